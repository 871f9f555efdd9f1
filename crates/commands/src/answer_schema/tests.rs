use serde_json::json;

use super::*;

fn misfit(schema: &Value, value: &Value) -> Option<String> {
    AnswerSchema::read(&schema.to_string()).unwrap().misfit(&value.to_string())
}

#[test]
fn a_value_fits_or_its_place_is_named() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
            "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "maxItems": 2, "uniqueItems": true},
        },
        "required": ["name"],
        "additionalProperties": false,
        "$defs": {"part": {"anyOf": [{"type": "integer", "minimum": 1}, {"const": null}, {"$ref": "#"}]}},
    });
    for fits in [
        json!({"name": "a"}),
        json!({"name": "a", "parts": [1, null]}),
        json!({"name": "b", "parts": [{"name": "c"}]}),
    ] {
        assert_eq!(misfit(&schema, &fits), None, "{fits}");
    }
    for (value, why) in [
        (json!([]), "want object, but got array"),
        (json!({}), "missing properties 'name'"),
        (json!({"name": ""}), "/name: length must be >=1, but got 0"),
        (json!({"name": "A"}), "/name: 'A' does not match"),
        (json!({"name": "a", "more": 1}), "additionalProperties 'more' not allowed"),
        (json!({"name": "a", "parts": [1, 2, 3]}), "/parts: maximum 2 items"),
        (json!({"name": "a", "parts": [1, 1.0]}), "/parts: items at 0 and 1 are equal"),
        (json!({"name": "a", "parts": [1.5]}), "/parts/0: want integer, but got number"),
        (json!({"name": "a", "parts": [{"name": 1}]}), "/parts/0/name: want string, but got number"),
    ] {
        let said = misfit(&schema, &value).unwrap();
        assert!(said.starts_with(why), "{value}: {said}");
    }
}

#[test]
fn each_keyword_takes_part() {
    for (schema, fits, not) in [
        (json!({"type": ["null", "integer"]}), json!(2.0), json!(2.5)),
        (json!({"enum": [1, {"a": 1, "b": [2]}]}), json!({"b": [2.0], "a": 1}), json!({"a": 1})),
        (json!({"const": "x"}), json!("x"), json!("y")),
        (json!({"exclusiveMinimum": 1, "exclusiveMaximum": 3}), json!(2), json!(3)),
        (json!({"minimum": 1, "maximum": 3}), json!(3), json!(0)),
        (json!({"multipleOf": 0.5}), json!(1.5), json!(1.6)),
        (json!({"properties": {"a": {}}, "unevaluatedProperties": false}), json!({"a": 1}), json!({"b": 1})),
        (json!({"dependentRequired": {"a": ["b"]}}), json!({"a": 1, "b": 2}), json!({"a": 1})),
        (json!({"minItems": 1}), json!([1]), json!([])),
        (json!({"prefixItems": [{"type": "string"}], "items": false}), json!(["a"]), json!(["a", 1])),
        (json!({"contains": {"const": 1}}), json!([2, 1]), json!([2])),
        (json!({"minProperties": 1, "maxProperties": 1}), json!({"a": 1}), json!({"a": 1, "b": 2})),
        (json!({"propertyNames": {"maxLength": 1}}), json!({"a": 1}), json!({"ab": 1})),
        (
            json!({"patternProperties": {"^n": {"type": "number"}}}),
            json!({"n": 1, "m": "x"}),
            json!({"n": ""}),
        ),
        (json!({"additionalProperties": {"type": "number"}}), json!({"a": 1}), json!({"a": ""})),
        (json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), json!(1), json!(3)),
        (json!({"oneOf": [{"minimum": 1}, {"maximum": 2}]}), json!(3), json!(2)),
        (json!({"not": {"type": "string"}}), json!(1), json!("x")),
        (
            json!({"if": {"type": "string"}, "then": {"maxLength": 1}, "else": {"const": 1}}),
            json!("x"),
            json!(2),
        ),
        (
            json!({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "null"}}}),
            json!(null),
            json!(1),
        ),
    ] {
        assert_eq!(misfit(&schema, &fits), None, "{schema}");
        assert!(misfit(&schema, &not).is_some(), "{schema}");
    }
}

#[test]
fn what_is_no_schema_is_refused_by_its_place() {
    for (text, why) in [
        ("{", "it is no JSON"),
        ("[]", "it is no object"),
        (r#"{"type":"text"}"#, "/type: "),
        (
            r#"{"properties":{"a":{"items":3}}}"#,
            "/properties/a/items: want boolean or object, but got number",
        ),
        (r#"{"required":"a"}"#, "/required: want array, but got string"),
        (r#"{"maxLength":-1}"#, "/maxLength: must be >=0, but got -1"),
        (r#"{"pattern":"("}"#, "/pattern: "),
        (r##"{"$ref":"#/$defs/x"}"##, "json-pointer in the schema#/$defs/x not found"),
        (r#"{"$ref":"file:///etc/hostname"}"#, "file:///etc/hostname is not in this schema"),
        (r#"{"$ref":"https://example.org/x"}"#, "https://example.org/x is not in this schema"),
        (r#"{"anyOf":[]}"#, "/anyOf: minimum 1 items required"),
    ] {
        let said = AnswerSchema::read(text).err().unwrap();
        assert!(said.starts_with(why), "{text}: {said}");
    }
}

#[test]
fn a_schema_that_leads_to_itself_is_refused() {
    for (schema, place) in [
        (json!({"$ref": "#"}), "the schema"),
        (json!({"anyOf": [{"$ref": "#"}, {"type": "string"}]}), "/anyOf/0"),
        (
            json!({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {
                "a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
            "/properties/x",
        ),
        (
            json!({"properties": {"a b/%": {"type": "object", "$ref": "#/properties/a%20b~1%25"}}}),
            "/properties/a b~1%",
        ),
    ] {
        let said = AnswerSchema::read(&schema.to_string()).err().unwrap();
        assert!(said.starts_with(&format!("{place} refers to itself")), "{schema}: {said}");
    }
    let list = json!({"type": "object", "properties": {"next": {"$ref": "#"}, "$ref": {"type": "string"}}});
    assert_eq!(misfit(&list, &json!({"next": {"next": {}}})), None, "a value stands between");
    assert!(misfit(&list, &json!({"next": {"next": 1}})).is_some());
}

#[test]
fn a_pattern_that_is_too_large_is_refused_by_its_place() {
    let large = "(a{1000}){1000}";
    for (schema, place) in [
        (json!({"pattern": large}), "/pattern: "),
        (json!({"properties": {"a": {"items": {"pattern": large}}}}), "/properties/a/items/pattern: "),
        (json!({"patternProperties": {large: {}}}), ""),
    ] {
        let said = AnswerSchema::read(&schema.to_string()).err().unwrap();
        assert!(said.starts_with(place) && !said.contains("bug"), "{said}");
    }
    let schema = json!({"properties": {"pattern": {"enum": [{"pattern": large}]}}});
    assert_eq!(misfit(&schema, &json!({"pattern": {"pattern": large}})), None, "no pattern");
}

#[test]
fn an_answer_is_json_alone() {
    let schema = AnswerSchema::read("{}").unwrap();
    assert!(schema.misfit("Here it is: {}").unwrap().starts_with("it is no JSON"));
    assert_eq!(schema.misfit("\n{}\n"), None);
}

/// Alternatives that refer to alternatives, `deep` of them, three each.
fn alternatives(deep: usize) -> Value {
    let mut defs = serde_json::Map::new();
    for level in 0..deep {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({"anyOf": [next, next, next]}));
    }
    defs.insert(format!("d{deep}"), json!({"type": "integer"}));
    json!({"$defs": defs, "$ref": "#/$defs/d0"})
}

#[test]
fn alternatives_that_multiply_are_refused_before_they_are_compared() {
    assert_eq!(misfit(&alternatives(4), &json!(5)), None);
    for deep in [14, 40, 200] {
        let refused = AnswerSchema::read(&alternatives(deep).to_string()).err();
        assert!(refused.is_some_and(|why| why.contains("more than 100000 alternatives")), "{deep}");
    }
}

#[test]
fn alternatives_that_multiply_with_each_level_of_an_answer_are_not_compared() {
    let again = json!({"items": {"$ref": "#"}});
    let schema = json!({"anyOf": [again, again, again]});
    let nested = |deep| (0..deep).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(misfit(&schema, &nested(3)), None);
    let refused = misfit(&schema, &nested(30)).unwrap();
    assert!(refused.ends_with("it was not compared"), "{refused}");
}

#[test]
fn an_ordinary_schema_takes_few_comparisons() {
    let schema = json!({
        "$defs": {"part": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"parts": {
            "type": "array", "items": {"$ref": "#/$defs/part"}}}}]}},
        "$ref": "#/$defs/part",
    });
    let leaves: Vec<Value> = (0..1_000).map(|number| json!(number.to_string())).collect();
    let answer = json!({"parts": [{"parts": leaves}, {"parts": ["a"]}]});
    let count = Comparisons::of(&schema).with(&answer);
    assert!((1_000..20_000).contains(&count), "{count}");
    assert_eq!(misfit(&schema, &answer), None);
}

#[test]
fn a_member_may_be_called_as_a_keyword_is() {
    let schema = json!({"properties": {"default": {"$ref": "#/properties/example"}, "example": {"$ref": "#/properties/default"}}});
    let refused = AnswerSchema::read(&schema.to_string()).err().unwrap();
    assert!(refused.ends_with("refers to itself, and nothing could fit it"), "{refused}");
}

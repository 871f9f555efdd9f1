use super::*;

fn form() -> Form {
    Form::new(&json!({"type": "object", "required": ["name", "age"], "properties": {
        "name": {"type": "string", "title": "Name", "description": "as on your card", "minLength": 2},
        "age": {"type": "integer", "minimum": 0},
        "news": {"type": "boolean", "default": false},
        "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
        "days": {"type": "array", "items": {"anyOf": [{"const": "mo", "title": "Monday"}, {"const": "tu"}]}},
    }}))
    .unwrap()
}

fn given(form: &Form, all: &[(&str, &str)]) -> Result<Value, String> {
    let all: Vec<_> = all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    form.values(&all).map(Value::Object)
}

#[test]
fn texts_become_the_values_of_their_fields() {
    let form = form();
    let lines: Vec<String> = form.fields().iter().map(FormField::line).collect();
    assert_eq!(
        lines,
        [
            "name (text, at least 2 characters; needed): Name – as on your card",
            "age (at least 0; needed)",
            "news (y or n; without it n)",
            "colour (one of r (Red), g (Green))",
            "days (some, with commas, of mo (Monday), tu)",
        ]
    );
    let all = [("name", " Ann "), ("age", "30"), ("news", "Y"), ("colour", "Green"), ("days", "tu, Monday")];
    let values = json!({"name": "Ann", "age": 30, "news": true, "colour": "g", "days": ["tu", "mo"]});
    assert_eq!(given(&form, &all).unwrap(), values);
    let promised =
        json!({"type": "object", "properties": {"a": {"enum": ["x"], "type": "string", "default": "zz"}}});
    assert_eq!(Form::new(&promised).unwrap().fields()[0].line(), "a (one of x)", "it fits no choice");
    let least = [("name", "Ann"), ("age", "30"), ("colour", "")];
    assert_eq!(given(&form, &least).unwrap(), json!({"name": "Ann", "age": 30, "news": false}));
}

#[test]
fn a_field_says_what_it_takes_and_within_which_bounds() {
    for (property, takes) in [
        (json!({"type": "integer", "minimum": 1, "maximum": 100}), "1 to 100"),
        (json!({"type": "integer"}), "whole number"),
        (json!({"type": "number", "maximum": 0.5}), "number, at most 0.5"),
        (json!({"type": "number", "minimum": 5}), "number, at least 5"),
        (json!({"type": "number", "exclusiveMinimum": 5, "maximum": 6}), "number, more than 5, at most 6"),
        (json!({"type": "integer", "minimum": 1, "exclusiveMinimum": 1}), "more than 1"),
        (json!({"type": "integer", "minimum": 2, "exclusiveMinimum": 1}), "at least 2"),
        (json!({"type": "integer", "exclusiveMaximum": 3, "maximum": 9}), "less than 3"),
        (json!({"type": "string", "format": "date"}), "date, 2026-01-31"),
        (json!({"type": "string", "minLength": 2, "maxLength": 9}), "text, 2 to 9 characters"),
        (
            json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"enum": ["a", "b", "c"]}}),
            "1 to 2, with commas, of a, b, c",
        ),
        (
            json!({"type": "string", "minLength": 2, "pattern": "^[a-z]+$"}),
            "text, at least 2 characters, matching ^[a-z]+$",
        ),
        (json!({"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 4}), "1 to 9, a multiple of 4"),
        (json!({"type": "number", "multipleOf": 5}), "number, a multiple of 5"),
        (json!({"type": "integer", "multipleOf": 5}), "whole number, a multiple of 5"),
        (json!({"type": "integer", "enum": [1, 2, 3], "minimum": 2}), "one of 2, 3"),
        (json!({"type": "boolean", "const": true}), "y"),
        (json!({"type": "string", "minLength": 2, "enum": ["a", "bb"]}), "one of bb"),
    ] {
        let form = Form::new(&json!({"type": "object", "properties": {"a": property}})).unwrap();
        assert_eq!(form.fields()[0].line(), format!("a ({takes})"));
    }
}

#[test]
fn a_choice_is_taken_in_any_case_where_one_alone_fits() {
    let of = |choices: Value, text: &str| {
        let property = json!({"type": "string", "enum": choices});
        let form = Form::new(&json!({"type": "object", "properties": {"a": property}})).unwrap();
        form.values(&[("a".to_owned(), text.to_owned())]).map(|values| values["a"].clone())
    };
    assert_eq!(of(json!(["Cats", "dogs"]), "cats"), Ok(json!("Cats")));
    assert_eq!(of(json!(["Cats", "cats"]), "cats"), Ok(json!("cats")));
    assert_eq!(of(json!(["pay ", "cash"]), "pay"), Ok(json!("pay ")));
    assert_eq!(of(json!(["pay ", "cash"]), "Pay "), Ok(json!("pay ")));
    assert!(of(json!(["Cats", "cats"]), "CATS").is_err());
}

#[test]
fn every_problem_is_named() {
    let form = form();
    let why =
        given(&form, &[("age", "old"), ("colour", "blue"), ("x", "1"), ("age", "2"), ("news", "maybe")]);
    assert_eq!(
        why.unwrap_err(),
        "there is no field \"x\"; age is given twice; name is needed; age: \"old\" is no number; news: \"maybe\" is \
         neither y nor n; colour: \"blue\" is none of r (Red), g (Green)"
    );
    let why = given(&form, &[("name", "A"), ("age", "-1")]).unwrap_err();
    assert!(why.contains("name") && why.contains("age"), "{why}");
    assert!(given(&form, &[("name", &"x".repeat(VALUES_CHARS)), ("age", "1")]).is_err());
}

#[test]
fn a_field_is_checked_by_itself() {
    let form = Form::new(&json!({"type": "object", "required": ["mail"], "properties": {
        "mail": {"type": "string", "format": "email"},
        "born": {"type": "string", "format": "date"},
        "n": {"type": "integer", "maximum": 3},
    }}))
    .unwrap();
    let fields = form.fields();
    let problem = |place: usize, text: &str| form.problem(&fields[place], text);
    for (place, text) in [(0, "a@b.example"), (1, ""), (1, "2026-11-30"), (2, "3"), (2, " ")] {
        assert_eq!(problem(place, text), None, "{text}");
    }
    for (place, text) in [(0, ""), (0, "foo"), (1, "yesterday"), (2, "4"), (2, "x"), (2, "1.5")] {
        assert!(problem(place, text).is_some_and(|why| why.contains(&fields[place].name)), "{text}");
    }
}

#[test]
fn keywords_that_are_not_told_are_left_out() {
    let none = json!({"type": "object", "properties": {"a": {"type": "number"}}});
    let of = |kind: &str, key: &str, value: &Value| {
        let mut schema = none.clone();
        schema["properties"]["a"] = json!({"type": kind, key: value});
        Form::new(&schema).unwrap().schema()["properties"]["a"].clone()
    };
    for (kind, key, value) in [
        ("number", "exclusiveMinimum", json!(true)),
        ("number", "$ref", json!("#/$defs/x")),
        ("number", "not", json!({})),
        ("number", "multipleOf", json!(0.1)),
        ("number", "pattern", json!("^b$")),
        ("string", "$ref", json!("file:///etc/passwd")),
        ("string", "minLength", json!("x")),
        ("string", "pattern", json!("(?=b)b")),
        ("string", "pattern", json!("b".repeat(NAME_CHARS + 1))),
        ("string", "format", json!("uuid")),
        ("string", "anyOf", json!([{"minLength": 3}])),
    ] {
        assert_eq!(of(kind, key, &value), json!({"type": kind}), "{key}: {value}");
    }
    assert_eq!(of("number", "exclusiveMinimum", &json!(1))["exclusiveMinimum"], 1, "the control");
    for (key, value) in
        [("$schema", json!("https://spec.example.org/x")), ("not", json!({})), ("minProperties", json!(2))]
    {
        let mut schema = none.clone();
        schema[key] = value;
        assert_eq!(Form::new(&schema).unwrap(), Form::new(&none).unwrap(), "{key}");
    }
    let twice = json!({"type": "object", "required": ["a", "a"], "properties": {"a": {"type": "number"}}});
    assert!(Form::new(&twice).unwrap().fields()[0].is_required);
}

#[test]
fn what_nobody_could_type_is_no_form() {
    let of = |property: Value| Form::new(&json!({"type": "object", "properties": {"a": property}}));
    for property in [
        json!({"type": "object"}),
        json!({"type": "string", "default": "x".repeat(SAID_CHARS + 1)}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "string", "enum": [1]}),
        json!({"type": "string", "enum": ["pay", "pay "]}),
        json!({"type": "string", "oneOf": [{"const": "Yes", "title": "no"}, {"const": "No", "title": "yes"}]}),
        json!({"type": "string", "enum": []}),
        json!({"type": "string", "enum": [" ", "a"]}),
        json!({"type": "string", "enum": ["a\u{1b}[2J"]}),
        json!({"type": ["string", "null"]}),
        json!({"type": "integer", "minimum": 5, "maximum": 1}),
        json!({"type": "string", "minLength": 5, "maxLength": 1}),
        json!({"type": "number", "exclusiveMinimum": 5, "exclusiveMaximum": 5}),
        json!({"type": "number", "minimum": 5, "exclusiveMaximum": 5}),
        json!({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}),
        json!({"type": "integer", "minimum": 1.2, "maximum": 1.8}),
        json!({"type": "integer", "minimum": 1, "maximum": 5, "multipleOf": 10}),
        json!({"type": "number", "minimum": 10, "exclusiveMaximum": 15, "exclusiveMinimum": 10, "multipleOf": 5}),
        json!({"type": "integer", "enum": [1, 2], "minimum": 3}),
        json!({"type": "boolean", "enum": ["x"]}),
        json!({"type": "string", "minLength": 2, "enum": ["a"]}),
        json!({"type": "string", "const": "x", "enum": ["y"]}),
        json!({"type": "string", "const": "x", "minLength": 2}),
        json!({"type": "array", "minItems": 2, "items": {"enum": ["a", "bb"], "minLength": 2}}),
        json!({"type": "array", "items": {"enum": ["a", "b"], "minLength": 2}}),
        json!({"type": "array", "minItems": 3, "items": {"enum": ["a", "b"]}}),
        json!({"type": "array", "minItems": 2, "maxItems": 1, "items": {"enum": ["a", "b"]}}),
        json!({"type": "array", "items": {"enum": ["x, y", "z"]}}),
        json!({"type": "string", "enum": ["a", "b"], "enumNames": ["One", "One"]}),
        json!({"type": "string", "oneOf": [{"const": "a", "title": "b"}, {"const": "b", "title": "a"}]}),
    ] {
        assert!(of(property.clone()).is_err(), "{property}");
    }
    for property in [
        json!({"type": "integer", "minimum": 1, "maximum": 1}),
        json!({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 3}),
        json!({"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 2}),
        json!({"type": "number", "minimum": 10, "exclusiveMaximum": 15, "multipleOf": 5}),
        json!({"type": "string", "minLength": 2, "enum": ["a", "bb"]}),
        json!({"type": "string", "const": "x", "enum": ["x", "y"]}),
        json!({"type": "array", "minItems": 2, "items": {"enum": ["a", "b"]}}),
        json!({"type": "string", "enum": ["x, y", "z"], "enumNames": ["x, y", "Z"]}),
        json!({"type": "array", "items": {"anyOf": [{"const": "x, y", "title": "both"}, {"const": "z"}]}}),
    ] {
        assert!(of(property.clone()).is_ok(), "{property}");
    }
    let ghost = json!({"type": "object", "required": ["ghost"], "properties": {"a": {"type": "string"}}});
    assert_eq!(Form::new(&ghost).unwrap_err(), "it needs \"ghost\", which is none of its fields");
    let many: Map<String, Value> =
        (0..=MOST_FIELDS).map(|n| (n.to_string(), json!({"type": "string"}))).collect();
    assert!(Form::new(&json!({"type": "object", "properties": many})).is_err());
    assert!(Form::new(&json!({"type": "object", "properties": {"a\nb": {"type": "string"}}})).is_err());
    assert!(Form::new(&json!({"type": "object"})).is_err());
    assert!(Form::new(&json!({"type": "object", "properties": {}})).is_ok());
    // Nor is it one where it is read.
    assert!(serde_json::from_value::<Form>(json!({"type": "object"})).is_err());
    assert_eq!(serde_json::from_value::<Form>(json!(form())).unwrap(), form());
}

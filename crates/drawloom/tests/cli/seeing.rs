//! What is shown of a tree: marks, settings, passages found, differences.

use serde_json::{Value, json};

use crate::world::World;

/// A document whose last passage a model wrote.
pub(crate) fn written() -> (World, String) {
    let world = World::new();
    world.write(
        "config.toml",
        "[model]\ndefault = \"script:echo\"\n[presets.calm]\ntemperature = 0.25\nthink = \"low\"\n",
    );
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let (_, made) =
        world.json(&["tree", "generate", "Tale", "--preset", "calm", "--seed", "7", "--max-tokens", "40"]);
    (world, made["nodes"][0]["id"].as_str().unwrap().to_owned())
}

fn node_of<'a>(shown: &'a Value, id: &str) -> &'a Value {
    shown["nodes"].as_array().unwrap().iter().find(|node| node["id"] == id).unwrap()
}

#[test]
fn the_settings_of_a_generation_stand_at_its_node_and_its_spans() {
    let (world, made) = written();
    let asked =
        json!({"temperature": 0.25, "seed": 7, "max_tokens": 40, "thinking": "low", "preset": "calm"});
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    assert_eq!(node_of(&shown, &made)["settings"], asked);
    assert!(shown["nodes"][1]["settings"].is_null(), "{shown}");
    let told = world.ok(&["tree", "show", "Tale"]);
    assert!(told.contains("preset calm · temperature 0.25 · seed 7"), "{told}");
    let (_, text) = world.json(&["tree", "text", "Tale", "--spans"]);
    let spans = text["spans"].as_array().unwrap();
    let of_model = spans.iter().find(|span| span["kind"] == "model").unwrap();
    assert_eq!(of_model["settings"], asked);

    // A replay is asked in its own way, which is what its node says.
    let (_, replayed) = world.json(&["context", "replay", &made, "--model", "script:echo"]);
    let (_, all) = world.json(&["tree", "show", "Tale", "--all"]);
    let again = node_of(&all, replayed["node"].as_str().unwrap());
    assert!(again["settings"].is_object() && again["model"] == "script/echo", "{again}");
    // They stay with what is left of a text that was edited.
    world.ok(&["tree", "edit", "Tale", &made, "--text", "It rained. And more."]);
    let (_, text) = world.json(&["tree", "text", "Tale", "--spans"]);
    assert!(text["spans"].to_string().contains("0.25"), "{text}");
}

#[test]
fn marks_are_shown_at_their_place() {
    let (world, made) = written();
    world.ok(&["tree", "tag", "Tale", &made, "scene"]);
    world.ok(&["tree", "annotate", "Tale", &made, "Too short."]);
    world.ok(&["tree", "head", "Tale", "--text", "A tale of rain."]);
    world.ok(&["tree", "note", "Tale", "--text", "Slowly.", "--depth", "2"]);
    world.ok(&["tree", "draft", "Tale", "And then"]);
    let shown = world.ok(&["tree", "show", "Tale"]);
    let at = |words: &str| shown.find(words).unwrap_or_else(|| panic!("no {words}: {shown}"));
    assert!(at("A tale of rain.") < at("It rained."), "{shown}");
    assert!(at("#scene") < at("Too short.") && at("Too short.") < at("And then"), "{shown}");
    assert!(at("sent 2 paragraphs before the end") < at("Slowly."), "{shown}");

    assert!(world.ok(&["tree", "tag", "Tale"]).contains("#scene"));
    assert!(world.ok(&["tree", "annotate", "Tale"]).contains("Too short."));
    assert_eq!(world.ok(&["tree", "head", "Tale"]), "A tale of rain.");
    assert_eq!(world.ok(&["tree", "note", "Tale"]), "Slowly.");
    assert_eq!(world.ok(&["tree", "draft", "Tale"]), "And then");
    world.ok(&["tree", "head", "Tale", "--text", ""]);
    let none = world.run(&["tree", "head", "Tale"]);
    assert_eq!((none.code, none.out.as_str(), none.err.trim()), (Some(0), "", "none is set"));
}

//! What was spent: by the usage that servers report and the prices of the configuration.

use serde_json::Value;

use crate::replaying::{Server, server, silent_server};
use crate::world::World;

/// Two servers elsewhere, the second of which reports nothing.
fn servers(world: &World) -> (Server, Server) {
    let (told, silent) = (server(), silent_server());
    let mut config = "[budget]\nday = 0.009\n".to_owned();
    for (name, server) in [("told", &told), ("silent", &silent)] {
        config += &format!(
            "[providers.{name}]\nbase_url = \"http://127.0.0.1:{}\"\nplace = \"remote\"\n\
             dialect = \"anthropic_messages\"\n[models.\"{name}/m\"]\noutput_limit = 16\n\
             price_input = 10\nprice_output = 20\n",
            server.port
        );
    }
    world.write("config.toml", &config);
    (told, silent)
}

fn row<'a>(costs: &'a Value, key: &str) -> &'a Value {
    let rows = costs["rows"].as_array().unwrap();
    rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}: {costs}"))
}

#[test]
fn what_servers_report_at_configured_prices_is_what_was_spent() {
    let world = World::new();
    let _servers = servers(&world);
    let say = |words: &[&str]| world.ok(&[&["chat", "-m", "hi"], words].concat());
    say(&["--model", "told/m"]);
    assert!(world.ok(&["cost"]).contains("1 call "), "one is one");
    say(&["--model", "told/m"]);
    let (_, costs) = world.json(&["cost", "today"]);
    let told = row(&costs, "told/m");
    let known = [&told["calls"], &told["input_uncached"], &told["cache_read"], &told["output"]];
    assert_eq!(known, [&2.into(), &60.into(), &0.into(), &Value::from(6)]);
    assert_eq!(told["cache_write"], 0, "a known nothing is nothing");
    // 30 at $10 and 3 at $20 a million, twice.
    assert_eq!((&told["cost"], &costs["total"]), (&0.000_72.into(), &0.000_72.into()));
    let limits = &costs["limits"];
    assert_eq!((&limits["day"], &limits["spent_today"]), (&0.009.into(), &0.000_72.into()));
    assert!((limits["share_of_day"].as_f64().unwrap() - 0.08).abs() < 1e-9, "{costs}");
    assert!(world.ok(&["cost", "month"]).contains("of $0.0090 (8 %)"), "{}", world.ok(&["cost"]));

    say(&["--model", "silent/m"]);
    say(&["--session", "other", "--model", "script:echo"]);
    let (_, costs) = world.json(&["cost", "month"]);
    let silent = row(&costs, "silent/m");
    assert_eq!(silent["cache_write"], Value::Null, "what nobody says is not nothing");
    assert!(silent["input_uncached"].as_u64() > Some(0), "it is estimated, as it is paid for: {silent}");
    let (_, by_session) = world.json(&["cost", "all", "--by", "session"]);
    assert_eq!(row(&by_session, "main")["calls"], 3);
    let (_, by_purpose) = world.json(&["cost", "--by", "purpose"]);
    let all: u64 =
        by_session["rows"].as_array().unwrap().iter().map(|row| row["calls"].as_u64().unwrap()).sum();
    assert_eq!(row(&by_purpose, "turn")["calls"], all);
    assert_eq!(by_purpose["total"], costs["total"], "the same under every key");
}

#[test]
fn a_local_model_with_prices_costs_what_they_say() {
    for (prices, cost) in
        [("price_input = 10\nprice_output = 20\n", Value::from(0.000_36)), ("", Value::Null)]
    {
        let world = World::new();
        let server = server();
        world.write(
            "config.toml",
            &format!(
                "[providers.near]\nbase_url = \"http://127.0.0.1:{}\"\ndialect = \"anthropic_messages\"\n\
                 [models.\"near/m\"]\noutput_limit = 16\n{prices}",
                server.port
            ),
        );
        let (_, done) = world.json(&["--model", "near/m", "chat", "-m", "hi"]);
        assert_eq!(done["cost"], cost, "{done}");
    }
}

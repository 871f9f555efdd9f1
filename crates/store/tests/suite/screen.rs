//! The first screen of a long tree costs few round trips, whatever stands around it.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use loom::drift::is_drifted;
use loom::path::{ViewOverrides, is_ancestor};
use loom::render::{tip, window};
use loom::{CellKey, Mode, OpTarget, PositionId, RowError, TreeReader, ViewName};
use store::{Store, read};

use super::both::block_on;
use super::home::{Home, OWNER, Page};
use super::server::Schema;

/// Nodes of a screen.
const SCREEN: usize = 50;

/// Round trips that a screen may take.
const MOST: u64 = 40;

/// What `tree show` asks of the rows for a screen; the number of nodes shown.
fn screen(rows: &dyn TreeReader) -> Result<usize, RowError> {
    let view = ViewName::default();
    let path = ViewOverrides::read(rows, &view, tip(rows, &view)?)?;
    let cells = rows.choices(None, path.tip.id)?;
    let pruned: BTreeSet<PositionId> = cells
        .iter()
        .filter_map(|(key, cell)| match key {
            CellKey::Pruned { target: OpTarget::Position(at) } if cell.value.is_set() => Some(*at),
            _ => None,
        })
        .collect();
    let shown = window(rows, &view, &path, None, SCREEN)?;
    for at in &pruned {
        is_ancestor(rows, *at, shown[0].position.id)?;
    }
    for passage in &shown {
        let at = &passage.position;
        rows.cell(&CellKey::Bookmark { position: at.id })?;
        rows.count_versions(at.id)?;
        rows.count_children(at.parent.unwrap_or(at.id))?;
        is_drifted(rows, &path, at, &passage.row)?;
    }
    Ok(shown.len())
}

/// Positions of the path.
const LENGTH: i64 = 10_000;

/// Rows of a path below the genesis, written into the tables: planning them one by one would take minutes. Every
/// position has `siblings` besides, which come behind the path in the order of the tree.
fn path_sql(siblings: i64) -> String {
    let mut jumps = vec![0, 1];
    let depth = |number: i64| number - 1;
    for number in 2..=LENGTH {
        let up = number - 1;
        let jump: i64 = jumps[up as usize];
        let further = jumps[jump as usize];
        let even = depth(up) - depth(jump) == depth(jump) - depth(further);
        jumps.push(if even { further } else { up });
    }
    let mut rows = Vec::new();
    for number in 2..=LENGTH {
        rows.push(format!("({number},{},{},{})", number - 1, depth(number), jumps[number as usize]));
        for sibling in 0..siblings {
            let other = LENGTH + (number - 2) * siblings + sibling + 1;
            rows.push(format!("({other},{},{},{})", number - 1, depth(number), jumps[number as usize]));
        }
    }
    format!(
        "CREATE TEMPORARY TABLE made AS SELECT column1::bigint n, column2::bigint parent, column3::bigint depth,
            column4::bigint jump FROM (VALUES {}) made;
        INSERT INTO positions SELECT (1::bigint << 32) + n, parent, 0, depth, jump, depth, 0, 0,
            decode(repeat('00', 16), 'hex'), CASE WHEN n <= {LENGTH} THEN 1 ELSE n END FROM made;
        {};
        UPDATE trees SET nodes = (SELECT count(*) FROM nodes);
        UPDATE cells SET number = {LENGTH} WHERE kind = 6",
        rows.join(","),
        nodes_sql("n, NULL::bigint FROM made")
    )
}

/// Nodes out of pairs of a number and a position.
fn nodes_sql(pairs: &str) -> String {
    format!(
        "INSERT INTO nodes (pk, id, position, seq, place, short, author, flags, created, content, content_hash,
            chain_hash, term)
        SELECT (1::bigint << 32) + number, decode(md5(number::text), 'hex'), position, 1, number, number::text, 1, 0,
            0, 'x', decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex'),
            decode(repeat('00', 16), 'hex')
        FROM (SELECT {pairs}) AS pair (number, position)"
    )
}

/// Versions of every fiftieth position of the path, which its view shows.
fn versions_sql() -> String {
    let pairs = "(SELECT max(nodes) FROM trees) + n, n * 50 FROM generate_series(1, 200) n";
    format!(
        "{}; INSERT INTO cells SELECT 1, 8, (SELECT n FROM names WHERE name = 'main'), position << 1, '', 3,
            pk - (1::bigint << 32), NULL, 1, 1, position - 1 FROM nodes WHERE position IS NOT NULL;
        UPDATE trees SET nodes = (SELECT count(*) FROM nodes)",
        nodes_sql(pairs)
    )
}

/// Marks siblings of the path as pruned, 10,000 of them.
const PRUNED: &str = "INSERT INTO cells SELECT 1, 11, 0, (10000 + n) << 1, '', 1, 0, NULL, 1, 10000 + n, 2
    FROM generate_series(1, 10000) n";

/// A tree with such a path, and answers at its end.
async fn planted(schema: &Schema, home: &Home, siblings: i64) -> Page {
    let page = home.create(Mode::Buffer, "").await;
    schema.batch_within(&path_sql(siblings));
    for number in 0..10 {
        let generation = super::generations::start(&page, "x").await;
        super::generations::answer(&page, &generation, &format!("{number}.")).await;
    }
    schema.batch_within("ANALYZE");
    page
}

async fn round_trips(home: &Home, page: &Page) -> u64 {
    let before = home.store.round_trips().unwrap();
    let shown = read(&home.store, OWNER, page.tree, screen).await.unwrap();
    assert_eq!(shown, SCREEN);
    home.store.round_trips().unwrap() - before
}

#[test]
fn the_first_screen_of_a_long_path_takes_few_round_trips() {
    for siblings in [0, 3] {
        let Some(schema) = Schema::new() else { return };
        block_on(async {
            let home = Home::new(Arc::new(schema.open()));
            let page = planted(&schema, &home, siblings).await;
            let mut took = vec![("alone", round_trips(&home, &page).await)];
            if siblings > 0 {
                schema.batch_within(&versions_sql());
                took.push(("200 versions", round_trips(&home, &page).await));
                schema.batch_within(PRUNED);
                took.push(("10,000 pruned", round_trips(&home, &page).await));
            }
            eprintln!("{siblings} siblings: {took:?} round trips");
            assert!(took.iter().all(|(_, took)| *took <= MOST), "{siblings} siblings: {took:?}");
        });
    }
}

/// Carries bytes from one end to the other, each piece later by half of a round trip.
fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut piece = [0; 65536];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        std::thread::sleep(Duration::from_micros(500));
        if to.write_all(&piece[..read]).is_err() {
            return;
        }
    }
    to.shutdown(std::net::Shutdown::Write).ok();
}

/// Stands before a server, a millisecond away; its address.
fn distant(server: std::net::SocketAddr) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(server).unwrap());
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || carry(client, server));
            std::thread::spawn(move || carry(back.0, back.1));
        }
    });
    address
}

#[test]
fn the_first_screen_of_a_server_a_millisecond_away_is_there_soon() {
    let Some(schema) = Schema::new() else { return };
    let Some(server) = schema.address() else { return };
    block_on(async {
        let page = planted(&schema, &Home::new(Arc::new(schema.open())), 0).await;
        let mut options = schema.options();
        options.url = options.url.replacen(&server.to_string(), &distant(server).to_string(), 1);
        let home = Home::new(Arc::new(Store::connect(&options).unwrap()));
        let page = Page { home: home.clone(), ..page };
        for which in ["first", "second"] {
            let start = Instant::now();
            let trips = round_trips(&home, &page).await;
            eprintln!("the {which} screen took {:?}, {trips} round trips of 1 ms", start.elapsed());
        }
    });
}

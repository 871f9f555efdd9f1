use super::*;

fn told(html: &str) -> String {
    markdown(html, &Url::parse("https://example.org/a/b?c").unwrap()).with_title()
}

#[test]
fn a_page_is_markdown_with_its_title_and_whole_links() {
    let page = "<!doctype html><html><head><title>A &amp; B</title><style>a{}</style><script>if (a<b) {}</script></head>\
        <body><nav><a href=/n>Nav</a></nav><h1>Hi <em>you</em></h1><p>Text with <code>x &lt; y</code>, a <a href='../c?d=1&amp;e=(2)'>\
        link  here</a>.<br>New <b>bold</b> line.<p>Second<ul><li>one<ul><li>two</ul><li>three</ul><ol start=3><li>c<li>d</ol>\
        <pre><code>fn main() {\n    x\n}</code></pre><table><tr><th>a<th>b</tr><tr><td>1<td>2|3</table>\
        <blockquote><p>q<p>r</blockquote><img src=//evil/x.png alt='a  picture'><hr>end</body>";
    let shown = "Title: A & B\n\n[Nav](https://example.org/n)\n\n# Hi *you*\n\nText with `x < y`, a \
        [link here](https://example.org/c?d=1&e=%282%29).\nNew **bold** line.\n\nSecond\n\n- one\n  - two\n- three\n\n3. c\n4. d\n\n\
        ```\nfn main() {\n    x\n}\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2\\|3 |\n\n> q\n>\n> r\n\n[picture: a picture]\n\n---\n\nend";
    assert_eq!(told(page), shown);
}

#[test]
fn a_page_makes_no_more_of_itself_than_it_is() {
    let base = format!("<base href='http://e.test/{}/'>", "a".repeat(1 << 20));
    let shown = told(&format!("{base}{}", "<p><a href=x>y</a>".repeat(1_000)));
    assert!(shown.len() < 10_000 && shown.starts_with("y\n\ny"), "{}", shown.len());
    let near = "a".repeat(1_900);
    let base = format!("<base href='http://e.test/{near}/'>");
    let shown = told(&format!("{base}{}", "<a href=x>y</a> ".repeat(10_000)));
    assert!(shown.len() <= MOST + 4_096 && shown.len() > MOST / 2, "{}", shown.len());
}

#[test]
fn what_is_not_seen_is_not_told() {
    let page = "<p>a<!-- c1 --><span hidden>c2</span><span style='display : none'>c3<span>c4</span></span>\
        <span aria-hidden=true>c5</span><script>c6</script><noscript>c7</noscript><template>c8</template>\
        <svg><title>c9</title></svg><a href='javascript:c10'>b</a><input hidden value=c11> c";
    assert_eq!(told(page), "ab c");
}

#[test]
fn a_hostile_page_costs_neither_time_nor_stack() {
    let began = std::time::Instant::now();
    for unit in [
        "<div>",
        "<ul><li>",
        "<blockquote>",
        "<table><tr><td>",
        "<a href=x>y",
        "<b>",
        "</p>",
        "<pre>",
        "&amp",
        "<!--",
    ] {
        let page = unit.repeat((1 << 20) / unit.len());
        assert!(told(&page).len() < 64 << 20, "{unit}");
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(60));
    assert!(told("<a href=x").is_empty());
}

//! Templates that pay for what they handle.
//!
//! The template language counts steps, not bytes: `{% set a = a ~ a %}` is four steps, and thirty times four
//! fill the memory. So a foreign template is changed before it runs: whatever it reads from a variable or writes
//! passes a filter that weighs it, and the sum is bounded. Since every text and every list is made of what was
//! read or stands in the template itself, that bounds whatever it can make, hold, compare and nest. The few
//! filters that make more than they are given pay for it themselves; multiplication is for numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::machinery::ast::{self, CallArg, Expr, Spanned, Stmt};
use minijinja::machinery::{CodeGenerator, Span, eval, make_string_output, parse};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Object, Rest, Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, filters, functions, tests};

/// Bytes that any value counts beside its content, so that a list of nothing is not free.
const VALUE_BYTES: usize = 32;
/// How deep lists may lie in each other.
const MAX_DEPTH: usize = 16;

const READ: &str = "metered_read";
const WRITTEN: &str = "metered_written";
const TIMES: &str = "metered_times";

/// How many bytes a template may handle, and of them write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) read: usize,
    pub(crate) written: usize,
}

/// What a template has handled so far.
#[derive(Debug)]
struct Meter {
    limits: Limits,
    read: AtomicUsize,
    written: AtomicUsize,
}

/// Why a template gave no text.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It handled more bytes than it may.
    Read,
    /// It wrote more bytes than it may.
    Written,
    Template(Error),
}

/// Objects given to a template, which may read them as often as it likes: it cannot make them.
#[derive(Debug)]
pub(crate) struct Given(pub(crate) Vec<Value>);

impl Object for Given {
    fn repr(self: &Arc<Self>) -> minijinja::value::ObjectRepr {
        minijinja::value::ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> minijinja::value::Enumerator {
        minijinja::value::Enumerator::Seq(self.0.len())
    }
}

/// Runs a template and gives what it writes.
pub(crate) fn rendered(
    mut environment: Environment<'_>,
    syntax: SyntaxConfig,
    source: &str,
    known: Value,
    limits: Limits,
) -> Result<String, Failure> {
    let meter = Arc::new(Meter { limits, read: AtomicUsize::new(0), written: AtomicUsize::new(0) });
    meter.equip(&mut environment);
    let run = || -> Result<String, Error> {
        let template = statement(&parse(source, "<template>", syntax)?)?;
        let mut generator = CodeGenerator::new("<template>", source);
        generator.compile_stmt(&template);
        let (instructions, blocks) = generator.finish();
        let mut text = String::new();
        eval(
            &environment,
            &instructions,
            known,
            &blocks,
            &mut make_string_output(&mut text),
            AutoEscape::None,
        )?;
        Ok(text)
    };
    run().map_err(|error| match () {
        () if meter.written.load(Ordering::Relaxed) > limits.written => Failure::Written,
        () if meter.read.load(Ordering::Relaxed) > limits.read => Failure::Read,
        () => Failure::Template(error),
    })
}

fn full() -> Error {
    Error::new(ErrorKind::InvalidOperation, "the template handles more than it may")
}

impl Meter {
    fn pay(&self, bytes: usize) -> Result<(), Error> {
        let before = self.read.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.limits.read { Err(full()) } else { Ok(()) }
    }

    fn weigh(&self, value: &Value, depth: usize) -> Result<(), Error> {
        self.pay(VALUE_BYTES + value.as_bytes().map_or(0, <[u8]>::len))?;
        let holds = matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable);
        if !holds || value.downcast_object_ref::<Given>().is_some() {
            return Ok(());
        }
        if depth == 0 {
            return Err(Error::new(ErrorKind::InvalidOperation, "lists lie too deep in each other"));
        }
        for item in value.try_iter()? {
            self.weigh(&item, depth - 1)?;
            if value.kind() == ValueKind::Map {
                self.weigh(&value.get_item(&item)?, depth - 1)?;
            }
        }
        Ok(())
    }

    fn equip(self: &Arc<Self>, environment: &mut Environment<'_>) {
        let meter = || Arc::clone(self);
        let read = meter();
        environment.add_filter(READ, move |value: Value| read.weigh(&value, MAX_DEPTH).map(|()| value));
        let written = meter();
        environment.add_filter(WRITTEN, move |value: Value| -> Result<Value, Error> {
            written.weigh(&value, MAX_DEPTH)?;
            let length = value.as_str().map_or_else(|| value.to_string().len(), str::len);
            let before = written.written.fetch_add(length, Ordering::Relaxed);
            if before.saturating_add(length) > written.limits.written { Err(full()) } else { Ok(value) }
        });
        environment.add_filter(TIMES, |a: &Value, b: &Value| -> Result<Value, Error> {
            let product = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_mul(b));
            product.map(Value::from).ok_or_else(|| {
                Error::new(ErrorKind::InvalidOperation, "only whole numbers are multiplied here")
            })
        });
        let join = meter();
        environment.add_filter(
            "join",
            move |value: &Value, between: Option<String>| -> Result<String, Error> {
                let (between, mut text) = (between.unwrap_or_default(), String::new());
                for (place, item) in value.try_iter()?.enumerate() {
                    join.weigh(&item, MAX_DEPTH)?;
                    join.pay(between.len())?;
                    if place > 0 {
                        text.push_str(&between);
                    }
                    text.push_str(&item.to_string());
                }
                Ok(text)
            },
        );
        let replace = meter();
        environment.add_filter(
            "replace",
            move |text: String, from: String, to: String| -> Result<String, Error> {
                replace.pay(text.len() + text.matches(from.as_str()).count().saturating_mul(to.len()))?;
                Ok(text.replace(from.as_str(), &to))
            },
        );
        let list = meter();
        environment.add_filter("list", move |value: &Value| -> Result<Value, Error> {
            let items = value.try_iter()?.map(|item| list.weigh(&item, MAX_DEPTH).map(|()| item));
            Ok(items.collect::<Result<Vec<Value>, Error>>()?.into())
        });
        environment.add_filter("tojson", |value: &Value, _: Rest<Value>, _: Kwargs| {
            serde_json::to_string(value)
                .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
        });
        let method = meter();
        environment.set_unknown_method_callback(move |_, value, name, arguments| {
            let result = crate::template::method(value, name, arguments)?;
            method.weigh(&result, MAX_DEPTH)?;
            Ok(result)
        });
        modest(environment);
    }
}

/// What makes no more than a few times what it is given.
fn modest(environment: &mut Environment<'_>) {
    environment.add_filter("trim", filters::trim);
    environment.add_filter("upper", filters::upper);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("title", filters::title);
    environment.add_filter("capitalize", filters::capitalize);
    environment.add_filter("length", filters::length);
    environment.add_filter("count", filters::length);
    environment.add_filter("default", filters::default);
    environment.add_filter("d", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("last", filters::last);
    environment.add_filter("int", filters::int);
    environment.add_filter("abs", filters::abs);
    environment.add_filter("string", filters::string);
    environment.add_filter("safe", filters::safe);
    environment.add_filter("items", filters::items);
    environment.add_filter("dictsort", filters::dictsort);
    environment.add_filter("reverse", filters::reverse);
    environment.add_filter("select", filters::select);
    environment.add_filter("reject", filters::reject);
    environment.add_filter("selectattr", filters::selectattr);
    environment.add_filter("rejectattr", filters::rejectattr);
    environment.add_filter("map", filters::map);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("undefined", tests::is_undefined);
    environment.add_test("none", tests::is_none);
    environment.add_test("boolean", tests::is_boolean);
    environment.add_test("true", tests::is_true);
    environment.add_test("false", tests::is_false);
    environment.add_test("number", tests::is_number);
    environment.add_test("integer", tests::is_integer);
    environment.add_test("float", tests::is_float);
    environment.add_test("string", tests::is_string);
    environment.add_test("sequence", tests::is_sequence);
    environment.add_test("iterable", tests::is_iterable);
    environment.add_test("mapping", tests::is_mapping);
    environment.add_test("odd", tests::is_odd);
    environment.add_test("even", tests::is_even);
    environment.add_test("divisibleby", tests::is_divisibleby);
    environment.add_test("eq", tests::is_eq);
    environment.add_test("equalto", tests::is_eq);
    environment.add_test("ne", tests::is_ne);
    environment.add_test("in", tests::is_in);
    environment.add_function("range", functions::range);
    environment.add_function("dict", functions::dict);
    environment.add_function("namespace", functions::namespace);
}

fn filtered<'a>(name: &'a str, value: Expr<'a>, args: Vec<CallArg<'a>>, span: Span) -> Expr<'a> {
    Expr::Filter(Spanned::new(ast::Filter { name, expr: Some(value), args }, span))
}

fn body<'a>(statements: &[Stmt<'a>]) -> Result<Vec<Stmt<'a>>, Error> {
    statements.iter().map(statement).collect()
}

/// The statement with every reading and writing weighed.
fn statement<'a>(given: &Stmt<'a>) -> Result<Stmt<'a>, Error> {
    let refused = |what: &str| {
        Err(Error::new(ErrorKind::InvalidOperation, format!("a chat template may not use `{what}`")))
    };
    let written = |value, span| {
        Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr: filtered(WRITTEN, value, Vec::new(), span) }, span))
    };
    Ok(match given {
        Stmt::Template(s) => {
            Stmt::Template(Spanned::new(ast::Template { children: body(&s.children)? }, s.span()))
        }
        Stmt::EmitExpr(s) => written(expression(&s.expr), s.span()),
        Stmt::EmitRaw(s) => {
            written(Expr::Const(Spanned::new(ast::Const { value: s.raw.into() }, s.span())), s.span())
        }
        Stmt::ForLoop(s) => {
            let changed = ast::ForLoop {
                target: target(&s.target),
                iter: expression(&s.iter),
                filter_expr: s.filter_expr.as_ref().map(expression),
                recursive: s.recursive,
                body: body(&s.body)?,
                else_body: body(&s.else_body)?,
            };
            Stmt::ForLoop(Spanned::new(changed, s.span()))
        }
        Stmt::IfCond(s) => {
            let changed = ast::IfCond {
                expr: expression(&s.expr),
                true_body: body(&s.true_body)?,
                false_body: body(&s.false_body)?,
            };
            Stmt::IfCond(Spanned::new(changed, s.span()))
        }
        Stmt::WithBlock(s) => {
            let assignments =
                s.assignments.iter().map(|(name, value)| (target(name), expression(value))).collect();
            Stmt::WithBlock(Spanned::new(ast::WithBlock { assignments, body: body(&s.body)? }, s.span()))
        }
        Stmt::Set(s) => {
            let changed = ast::Set { target: target(&s.target), expr: expression(&s.expr) };
            Stmt::Set(Spanned::new(changed, s.span()))
        }
        Stmt::SetBlock(s) => {
            let changed = ast::SetBlock {
                target: target(&s.target),
                filter: s.filter.as_ref().map(expression),
                body: body(&s.body)?,
            };
            Stmt::SetBlock(Spanned::new(changed, s.span()))
        }
        Stmt::FilterBlock(s) => {
            let changed = ast::FilterBlock { filter: expression(&s.filter), body: body(&s.body)? };
            Stmt::FilterBlock(Spanned::new(changed, s.span()))
        }
        Stmt::Macro(s) => {
            let changed = ast::Macro {
                name: s.name,
                args: s.args.iter().map(target).collect(),
                defaults: s.defaults.iter().map(expression).collect(),
                body: body(&s.body)?,
            };
            Stmt::Macro(Spanned::new(changed, s.span()))
        }
        Stmt::Continue(s) => Stmt::Continue(Spanned::new(ast::Continue, s.span())),
        Stmt::Break(s) => Stmt::Break(Spanned::new(ast::Break, s.span())),
        Stmt::AutoEscape(_) => return refused("autoescape"),
        Stmt::Block(_) => return refused("block"),
        Stmt::Import(_) | Stmt::FromImport(_) => return refused("import"),
        Stmt::Extends(_) => return refused("extends"),
        Stmt::Include(_) => return refused("include"),
        Stmt::CallBlock(_) => return refused("call"),
        Stmt::Do(_) => return refused("do"),
    })
}

/// What is assigned to: the same, since nothing is read.
fn target<'a>(given: &Expr<'a>) -> Expr<'a> {
    match given {
        Expr::Var(e) => Expr::Var(Spanned::new(ast::Var { id: e.id }, e.span())),
        Expr::GetAttr(e) => {
            Expr::GetAttr(Spanned::new(ast::GetAttr { expr: target(&e.expr), name: e.name }, e.span()))
        }
        Expr::List(e) => {
            Expr::List(Spanned::new(ast::List { items: e.items.iter().map(target).collect() }, e.span()))
        }
        Expr::Tuple(e) => {
            Expr::Tuple(Spanned::new(ast::Tuple { items: e.items.iter().map(target).collect() }, e.span()))
        }
        other => expression(other),
    }
}

/// The expression with every reading weighed.
fn expression<'a>(given: &Expr<'a>) -> Expr<'a> {
    let maybe = |given: &Option<Expr<'a>>| given.as_ref().map(expression);
    let all = |given: &[Expr<'a>]| given.iter().map(expression).collect::<Vec<_>>();
    match given {
        Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => {
            filtered(READ, place(given), Vec::new(), given.span())
        }
        Expr::Const(e) => Expr::Const(Spanned::new(ast::Const { value: e.value.clone() }, e.span())),
        Expr::Slice(e) => {
            let changed = ast::Slice {
                expr: expression(&e.expr),
                start: maybe(&e.start),
                stop: maybe(&e.stop),
                step: maybe(&e.step),
            };
            Expr::Slice(Spanned::new(changed, e.span()))
        }
        Expr::UnaryOp(e) => {
            let negated = matches!(e.op, ast::UnaryOpKind::Neg);
            let op = if negated { ast::UnaryOpKind::Neg } else { ast::UnaryOpKind::Not };
            Expr::UnaryOp(Spanned::new(ast::UnaryOp { op, expr: expression(&e.expr) }, e.span()))
        }
        Expr::BinOp(e) => {
            let (left, right) = (expression(&e.left), expression(&e.right));
            match e.op {
                ast::BinOpKind::Mul => filtered(TIMES, left, vec![CallArg::Pos(right)], e.span()),
                op => Expr::BinOp(Spanned::new(ast::BinOp { op, left, right }, e.span())),
            }
        }
        Expr::Compare(e) => {
            let ops =
                e.ops.iter().map(|op| ast::CompareOp { op: op.op, expr: expression(&op.expr) }).collect();
            Expr::Compare(Spanned::new(ast::Compare { expr: expression(&e.expr), ops }, e.span()))
        }
        Expr::IfExpr(e) => {
            let changed = ast::IfExpr {
                test_expr: expression(&e.test_expr),
                true_expr: expression(&e.true_expr),
                false_expr: maybe(&e.false_expr),
            };
            Expr::IfExpr(Spanned::new(changed, e.span()))
        }
        Expr::Filter(e) => {
            let changed = ast::Filter { name: e.name, expr: maybe(&e.expr), args: arguments(&e.args) };
            Expr::Filter(Spanned::new(changed, e.span()))
        }
        Expr::Test(e) => {
            let changed = ast::Test { name: e.name, expr: expression(&e.expr), args: arguments(&e.args) };
            Expr::Test(Spanned::new(changed, e.span()))
        }
        Expr::Call(e) => {
            let expr = match &e.expr {
                Expr::Var(_) => target(&e.expr),
                Expr::GetAttr(method) => {
                    let changed = ast::GetAttr { expr: expression(&method.expr), name: method.name };
                    Expr::GetAttr(Spanned::new(changed, method.span()))
                }
                other => expression(other),
            };
            Expr::Call(Spanned::new(ast::Call { expr, args: arguments(&e.args) }, e.span()))
        }
        Expr::List(e) => Expr::List(Spanned::new(ast::List { items: all(&e.items) }, e.span())),
        Expr::Tuple(e) => Expr::Tuple(Spanned::new(ast::Tuple { items: all(&e.items) }, e.span())),
        Expr::Map(e) => {
            Expr::Map(Spanned::new(ast::Map { keys: all(&e.keys), values: all(&e.values) }, e.span()))
        }
    }
}

/// A chain of names and indexes, of which only the end is weighed.
fn place<'a>(given: &Expr<'a>) -> Expr<'a> {
    match given {
        Expr::GetAttr(e) => {
            Expr::GetAttr(Spanned::new(ast::GetAttr { expr: place(&e.expr), name: e.name }, e.span()))
        }
        Expr::GetItem(e) => {
            let changed =
                ast::GetItem { expr: place(&e.expr), subscript_expr: expression(&e.subscript_expr) };
            Expr::GetItem(Spanned::new(changed, e.span()))
        }
        Expr::Var(_) => target(given),
        other => expression(other),
    }
}

fn arguments<'a>(given: &[CallArg<'a>]) -> Vec<CallArg<'a>> {
    let changed = |argument: &CallArg<'a>| match argument {
        CallArg::Pos(e) => CallArg::Pos(expression(e)),
        CallArg::Kwarg(name, e) => CallArg::Kwarg(name, expression(e)),
        CallArg::PosSplat(e) => CallArg::PosSplat(expression(e)),
        CallArg::KwargSplat(e) => CallArg::KwargSplat(expression(e)),
    };
    given.iter().map(changed).collect()
}

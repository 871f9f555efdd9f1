//! The dates of HTTP, as far as `retry-after` needs them.

/// Milliseconds since the Unix epoch of a date like `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn parse(date: &str) -> Option<i64> {
    let (_, rest) = date.split_once(", ")?;
    let mut words = rest.split(' ');
    let day: i64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let year: i64 = words.next()?.parse().ok()?;
    let mut time = words.next()?.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute, second) = (time.next()?.ok()?, time.next()?.ok()?, time.next()?.ok()?);
    if words.next() != Some("GMT") || !(1970..10_000).contains(&year) || !(1..=31).contains(&day) {
        return None;
    }
    let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = i64::try_from(names.iter().position(|name| *name == month)?).ok()?;
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(seconds * 1_000)
}

/// Days since the epoch; the year is counted from March, so that the leap day comes last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 719_469
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates_are_read() {
        assert_eq!(parse("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777_000));
        assert_eq!(parse("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000_000));
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "soon", "Sun, 06 Nov 1994", "Sun, 06 Foo 1994 08:49:37 GMT"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

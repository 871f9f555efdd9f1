//! Large numbers.

/// A number with a comma between each three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let (head, rest) = digits.split_at(if first == 0 { 3.min(digits.len()) } else { first });
    let groups = rest.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group));
    groups.fold(head.to_owned(), |grouped, group| grouped + "," + &group)
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn three_digits_are_a_group() {
        let numbers =
            [(0, "0"), (999, "999"), (1_000, "1,000"), (84_000, "84,000"), (1_234_567, "1,234,567")];
        for (number, written) in numbers {
            assert_eq!(grouped(number), written);
        }
        assert_eq!(grouped(100_000), "100,000");
    }
}

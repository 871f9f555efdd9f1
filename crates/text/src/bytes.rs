//! Numbers of bytes.

/// A size people can read.
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    let digits = format!("{value:.1}");
    format!("{} {unit}", digits.strip_suffix(".0").unwrap_or(&digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_one_digit_behind_the_point_at_most() {
        let sizes =
            [(0, "0 B"), (1_023, "1023 B"), (1_024, "1 KiB"), (1_536, "1.5 KiB"), (128 << 20, "128 MiB")];
        for (bytes, expected) in sizes {
            assert_eq!(size(bytes), expected);
        }
        assert!(size(u64::MAX).ends_with(" TiB"));
    }
}

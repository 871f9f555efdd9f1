//! Short ids: a few characters that name a node within its tree.
//!
//! They come from a hash of the ULID, whose own beginning is a time and would be the same for hours
//! (spec: loom §7). A store takes the first candidate that is free in the tree, once, at creation.

use crate::digest::Digest;

/// Crockford's base 32, lower case: no i, l, o, u.
pub const ALPHABET: &str = "0123456789abcdefghjkmnpqrstvwxyz";

/// The shortest short id, in characters.
pub const SHORTEST: usize = 4;

/// The longest short id, in characters.
pub const LONGEST: usize = 26;

/// Whether a short id may hold this character.
pub const fn is_letter(byte: u8) -> bool {
    byte.is_ascii_digit() || byte.is_ascii_lowercase() && !matches!(byte, b'i' | b'l' | b'o' | b'u')
}

/// Candidates for an id with these 16 bytes, the shortest first.
pub fn candidates(id: [u8; 16]) -> impl Iterator<Item = String> {
    let full = encoded(id);
    (SHORTEST..=LONGEST).map(move |len| full[..len].to_owned())
}

/// Reads a short id as people write it: any case, with the letters Crockford's alphabet reads as digits.
pub fn normalise(text: &str) -> String {
    text.chars()
        .map(|c| match c.to_ascii_lowercase() {
            'o' => '0',
            'i' | 'l' => '1',
            other => other,
        })
        .collect()
}

fn encoded(id: [u8; 16]) -> String {
    let hash = Digest::of(&id).0;
    let mut out = String::with_capacity(LONGEST);
    let (mut bits, mut held) = (0_u32, 0_u32);
    // 17 bytes hold the 26 characters of 5 bits.
    for byte in hash.into_iter().take(17) {
        held = held << 8 | u32::from(byte);
        bits += 8;
        while bits >= 5 && out.len() < LONGEST {
            bits -= 5;
            out.push(ALPHABET.as_bytes()[(held >> bits & 31) as usize] as char);
        }
        held &= (1 << bits) - 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_extend_one_another() {
        let all: Vec<_> = candidates([7; 16]).collect();
        assert_eq!(all[0].len(), SHORTEST);
        assert!(all.windows(2).all(|pair| pair[1].starts_with(&pair[0])));
        assert_eq!(all.last().map(String::len), Some(LONGEST));
    }

    #[test]
    fn the_letters_are_those_of_the_alphabet() {
        let letters: String = (0..128_u8).filter(|byte| is_letter(*byte)).map(char::from).collect();
        assert_eq!(letters, ALPHABET);
    }

    #[test]
    fn look_alikes_are_read_as_meant() {
        assert_eq!(normalise("OiL9x"), "0119x");
    }
}

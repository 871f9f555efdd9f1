//! What a page of the file holds besides its cells: SQLite overwrites a cell that is deleted, but not the place it was
//! moved away from when a page was split. So a copy of a row that is gone may stand in the unused part of a page.

use std::ops::Range;

/// Bytes before the page that begins the file has its header.
const FILE_HEADER: usize = 100;

/// Where page 1 says whether pages have a map to those that name them.
const HAS_MAP: Range<usize> = 52..56;

/// Whether pages have a map, by the first page.
pub(super) fn has_map(first: &[u8]) -> bool {
    first.get(HAS_MAP).is_some_and(|number| number != [0; 4])
}

/// Whether a page is part of the map of pages, whose first byte may be that of a page of cells.
pub(super) fn is_map(page: i64, size: usize) -> bool {
    /// The page whose bytes are locked, and which is never used.
    const LOCKED: i64 = 0x4000_0000;
    let size = size as i64;
    let mapped = size / 5 + 1;
    let map = (page - 2) / mapped * mapped + 2;
    let map = if map == LOCKED / size + 1 { map + 1 } else { map };
    page >= 2 && page == map
}

/// The unused parts of a page of cells; none of another one, or of one that does not hold together.
pub(super) fn unused(page: i64, bytes: &[u8]) -> Option<Vec<Range<usize>>> {
    let at = if page == 1 { FILE_HEADER } else { 0 };
    let short = |at: usize| Some(usize::from(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?)));
    let header = match bytes.get(at)? {
        2 | 5 => 12,
        10 | 13 => 8,
        _ => return None,
    };
    let (mut free, cells) = (short(at + 1)?, short(at + 3)?);
    let first = match short(at + 5)? {
        0 => 65_536,
        first => first,
    };
    let pointers = at + header;
    let end = pointers + 2 * cells;
    let all_behind = (0..cells).all(|cell| short(pointers + 2 * cell).is_some_and(|cell| cell >= first));
    if end > first || first > bytes.len() || !all_behind {
        return None;
    }
    let mut found: Vec<Range<usize>> = std::iter::once(end..first).collect();
    while free != 0 {
        let (next, size) = (short(free)?, short(free + 2)?);
        let is_sound = size >= 4 && free >= first && free + size <= bytes.len() && (next == 0 || next > free);
        if !is_sound {
            return None;
        }
        found.push(free + 4..free + size);
        free = next;
    }
    Some(found)
}

/// Whether something stands where nothing is used.
pub(super) fn has_remains(page: i64, bytes: &[u8]) -> bool {
    let is_dirty = |range: Range<usize>| bytes[range].iter().any(|byte| *byte != 0);
    unused(page, bytes).is_some_and(|ranges| ranges.into_iter().any(is_dirty))
}

/// A page without what stands where nothing is used.
pub(super) fn cleaned(page: i64, mut bytes: Vec<u8>) -> Vec<u8> {
    for range in unused(page, &bytes).unwrap_or_default() {
        bytes[range].fill(0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leaf of 64 bytes with one cell of 4 bytes at its end, one free block of 8 before it, and remains between.
    fn page() -> Vec<u8> {
        let mut page = vec![b'x'; 64];
        page[..8].copy_from_slice(&[13, 0, 52, 0, 1, 0, 52, 0]);
        page[8..10].copy_from_slice(&[0, 60]);
        page[52..56].copy_from_slice(&[0, 0, 0, 8]);
        page
    }

    #[test]
    fn what_is_unused_is_emptied_and_nothing_else() {
        assert!(has_remains(7, &page()));
        let clean = cleaned(7, page());
        assert!(!has_remains(7, &clean));
        assert_eq!((&clean[..10], &clean[60..]), (&page()[..10], &b"xxxx"[..]));
        assert!(clean[10..52].iter().chain(&clean[56..60]).all(|byte| *byte == 0));
        assert_eq!(clean[52..56], [0, 0, 0, 8]);
    }

    #[test]
    fn what_does_not_hold_together_stays() {
        for (at, byte) in [(0, 0), (0, 7), (4, 99), (6, 70), (9, 9), (55, 99), (53, 1)] {
            let mut page = page();
            page[at] = byte;
            assert_eq!(cleaned(7, page.clone()), page, "{at}");
        }
        assert_eq!(cleaned(1, vec![13; 40]), vec![13; 40]);
    }

    #[test]
    fn the_map_of_pages_is_told_from_pages() {
        let maps: Vec<i64> = (1..2000).filter(|page| is_map(*page, 4096)).collect();
        assert_eq!(maps, [2, 822, 1642]);
    }
}

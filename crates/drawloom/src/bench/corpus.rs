//! Texts out of a seed: the same for the same seed, on every machine.
//!
//! Words are drawn as in a natural language: the word of rank *r* turns up about 1/*r* as often as the first. So
//! there are words in nearly every passage and words in one of a thousand, which is what a search index meets.
//! One passage in twenty is Chinese.

const VOCABULARY: usize = 20_000;

const COMMON: &str = "the of and to a in that was he it with as his on be at by had not are but from or have an \
    they which one you were her all she there would their we him been has when who will more no if out so said \
    what up its about into than them can only other new some could time these two may then do first any my now \
    such like our over man me even most made after also did many before must through back years where much your";

const ONSETS: [&str; 16] =
    ["b", "br", "c", "d", "f", "g", "gr", "h", "l", "m", "n", "p", "r", "s", "st", "t"];
const RHYMES: [&str; 16] =
    ["a", "e", "ia", "o", "ow", "ain", "and", "ell", "er", "est", "ight", "ing", "old", "orn", "un", "y"];

/// Characters Chinese passages are made of.
const HAN: &str = "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对\
    可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长";

/// Bytes of a passage, about.
pub(super) const PASSAGE: usize = 200;

#[derive(Debug)]
pub(super) struct Corpus {
    state: u64,
    words: Vec<String>,
    han: Vec<char>,
}

impl Corpus {
    pub(super) fn new(seed: u64) -> Self {
        let mut words: Vec<String> = COMMON.split_whitespace().map(str::to_owned).collect();
        words.extend((0..VOCABULARY - words.len()).map(invented));
        Self { state: seed, words, han: HAN.chars().filter(|c| !c.is_whitespace()).collect() }
    }

    /// A number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.random() % end.max(1) as u64) as usize
    }

    /// A passage of about [`PASSAGE`] bytes, with the space or line break that ends it.
    pub(super) fn passage(&mut self) -> String {
        if self.below(20) == 0 {
            return self.chinese();
        }
        let mut text = String::with_capacity(PASSAGE + 16);
        let mut opens = true;
        while text.len() < PASSAGE {
            let rank = self.rank();
            let word = &self.words[rank];
            match word.chars().next().filter(|_| opens) {
                Some(first) => {
                    text.push(first.to_ascii_uppercase());
                    text.push_str(&word[first.len_utf8()..]);
                }
                None => text.push_str(word),
            }
            opens = self.below(12) == 0;
            text.push_str(if opens { ". " } else { " " });
        }
        text.truncate(text.trim_end().trim_end_matches('.').len());
        text.push_str(if self.below(4) == 0 { ".\n\n" } else { ". " });
        text
    }

    /// A word that at most one passage in a hundred has: of the 35 words of a passage, one is the word of rank
    /// *r* about 3/*r* of the time.
    pub(super) fn rare_word(&mut self) -> &str {
        let rank = 400 + self.below(1_200);
        &self.words[rank]
    }

    /// The word that most passages have.
    pub(super) fn common_word(&self) -> &str {
        &self.words[0]
    }

    pub(super) fn chinese_word(&mut self) -> String {
        [self.character(), self.character()].iter().collect()
    }

    /// A word as a model streams it.
    pub(super) fn token(&mut self) -> String {
        let rank = self.rank();
        format!(" {}", self.words[rank])
    }

    fn chinese(&mut self) -> String {
        let mut text: String = (0..PASSAGE / '。'.len_utf8()).map(|_| self.character()).collect();
        text.push('。');
        text
    }

    fn character(&mut self) -> char {
        let at = self.below(self.han.len());
        self.han[at]
    }

    /// The place of the next word in the vocabulary: evenly spread on a logarithmic scale.
    fn rank(&mut self) -> usize {
        let share = (self.random() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = (share * (self.words.len() as f64).ln()).exp() as usize;
        rank.saturating_sub(1).min(self.words.len() - 1)
    }

    /// 64 random bits. SplitMix64: a few lines, and the same everywhere.
    pub(super) fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The word with a number: as many syllables as it takes to tell it from the others.
fn invented(number: usize) -> String {
    let (mut rest, mut word) = (number, String::new());
    for _ in 0..2 + number % 2 {
        word.push_str(ONSETS[rest % ONSETS.len()]);
        rest /= ONSETS.len();
        word.push_str(RHYMES[rest % RHYMES.len()]);
        rest /= RHYMES.len();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_texts() {
        let texts = |seed| {
            let mut corpus = Corpus::new(seed);
            [corpus.passage(), corpus.passage(), corpus.passage()]
        };
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
    }

    #[test]
    fn rare_words_are_in_at_most_one_passage_of_a_hundred_and_the_common_one_in_most() {
        let mut corpus = Corpus::new(7);
        let passages: Vec<String> = (0..4_000).map(|_| corpus.passage().to_lowercase()).collect();
        let having = |word: &str| {
            let has = |text: &&String| text.split(|c: char| !c.is_alphabetic()).any(|other| other == word);
            passages.iter().filter(has).count()
        };
        for _ in 0..20 {
            let word = corpus.rare_word().to_owned();
            assert!(having(&word) <= passages.len() / 100, "{word}: {}", having(&word));
        }
        assert!(having(corpus.common_word()) > passages.len() / 2);
    }

    #[test]
    fn passages_have_about_the_size_they_are_said_to_have() {
        let mut corpus = Corpus::new(3);
        let all: usize = (0..1_000).map(|_| corpus.passage().len()).sum();
        assert!((190_000..220_000).contains(&all), "{all}");
    }
}

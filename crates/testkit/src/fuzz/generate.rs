//! Generates fuzzing inputs from a seed: mutated valid inputs, and very deep or long ones.

/// The material for the inputs of one target.
#[derive(Debug)]
pub struct Dictionary {
    /// Valid inputs to mutate.
    pub seeds: &'static [&'static str],
    /// Tokens of the target's syntax. They are also repeated, for deep nesting.
    pub words: &'static [&'static str],
}

/// Bytes and numbers that often cause errors.
const ODD_BYTES: &[&[u8]] = &[
    b"\0",
    b"\x1b[2J",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    "\u{feff}".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{1f468}\u{200d}\u{1f469}".as_bytes(),
    b"\\ud800",
    b"\r\n",
    b"-0",
    b"1e999",
    b"-9223372036854775809",
    b"18446744073709551616",
    b"0.1e-400",
];

/// The largest input.
const MAX_INPUT_BYTES: usize = 1 << 20;

impl Dictionary {
    /// Generates the input of this number.
    pub fn input(&self, seed: u64, number: u64) -> Vec<u8> {
        let mut random = Random(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut input = match random.below(8) {
            0 => Vec::new(),
            1 => return self.bomb(&mut random),
            _ => random.pick(self.seeds).map(|seed| seed.as_bytes().to_vec()).unwrap_or_default(),
        };
        for _ in 0..random.below(6) {
            self.mutate(&mut input, &mut random);
        }
        input.truncate(MAX_INPUT_BYTES);
        input
    }

    /// Repeats one word many times, perhaps with another that closes it, inside a valid
    /// input.
    fn bomb(&self, random: &mut Random) -> Vec<u8> {
        let depth = [100, 1_000, 10_000, 100_000][random.below(4)];
        let open = random.pick(self.words).copied().unwrap_or("[");
        let close = random.pick(self.words).copied().unwrap_or("]");
        let depth = depth.min(MAX_INPUT_BYTES / (open.len() + close.len()).max(1));
        let mut bomb = open.repeat(depth).into_bytes();
        if random.below(2) == 0 {
            bomb.extend(close.repeat(depth).into_bytes());
        }
        let around = random.pick(self.seeds).copied().unwrap_or_default().as_bytes();
        let at = random.below(around.len() + 1);
        [&around[..at], &bomb, &around[at..]].concat()
    }

    /// Applies one random change.
    fn mutate(&self, input: &mut Vec<u8>, random: &mut Random) {
        let at = random.below(input.len() + 1);
        let end = (at + random.below(32)).min(input.len());
        match random.below(9) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 => drop(input.drain(at..end)),
            2 => input.truncate(at),
            3 => {
                let piece = input[at..end].repeat(1 + random.below(64));
                splice(input, at, &piece);
            }
            4 => {
                let other = random.pick(self.seeds).copied().unwrap_or_default().as_bytes();
                let from = random.below(other.len() + 1);
                splice(input, at, &other[from..]);
            }
            5 => {
                let odd = random.pick(ODD_BYTES).copied().unwrap_or_default();
                splice(input, at, odd);
            }
            6 => {
                let long = vec![b"a \n\"\\"[random.below(5)]; random.below(20_000)];
                splice(input, at, &long);
            }
            _ => {
                let word = random.pick(self.words).copied().unwrap_or_default();
                let word = word.repeat(1 + random.below(3) * random.below(40));
                splice(input, at, word.as_bytes());
            }
        }
    }
}

fn splice(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}

/// The SplitMix64 generator, which gives the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`; 0 when `limit` is 0.
    fn below(&mut self, limit: usize) -> usize {
        let limit = limit.max(1) as u64;
        usize::try_from(self.next() % limit).unwrap_or(0)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let at = self.below(from.len());
        from.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static WORDS: Dictionary = Dictionary { seeds: &["{\"a\": [1]}"], words: &["[", "]"] };

    #[test]
    fn the_same_number_is_the_same_input_and_numbers_differ() {
        let inputs: Vec<Vec<u8>> = (0..200).map(|number| WORDS.input(3, number)).collect();
        assert!((0..200).all(|number| WORDS.input(3, number as u64) == inputs[number]));
        let distinct: std::collections::BTreeSet<&Vec<u8>> = inputs.iter().collect();
        assert!(150 < distinct.len(), "{}", distinct.len());
    }

    #[test]
    fn some_inputs_are_very_deep_and_none_is_too_large() {
        let inputs: Vec<Vec<u8>> = (0..500).map(|number| WORDS.input(3, number)).collect();
        let depth = |input: &Vec<u8>| input.iter().filter(|byte| **byte == b'[').count();
        assert!(inputs.iter().any(|input| 50_000 < depth(input)));
        assert!(inputs.iter().all(|input| input.len() <= MAX_INPUT_BYTES + 64));
    }
}

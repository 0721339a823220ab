//! "Did you mean": the known name that is nearest to a misspelt one.

/// The name among the known ones that differs from a misspelt one by few letters, if there is one.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (name.chars().count() / 4).max(1);
    let near = known.into_iter().map(|other| (distance(name, other), other)).filter(|(far, _)| *far <= allowed);
    near.min_by_key(|(far, _)| *far).map(|(_, other)| other)
}

/// How many letters have to be added, left out, changed or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, y) in b.iter().enumerate() {
            row[j + 1] = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_hand_finds_its_name_and_another_word_does_not() {
        let known = ["eager", "native", "aot_eager"];
        assert_eq!(nearest("naitve", known), Some("native"));
        assert_eq!(nearest("aot_eagr", known), Some("aot_eager"));
        assert_eq!(nearest("eagerr", known), Some("eager"));
        assert_eq!(nearest("inductor", known), None);
        assert_eq!(nearest("", known), None);
    }
}

//! Sample calls, written short.
//!
//! A sample is the text of a call's arguments: `f32[3, 4], 2, approximate='tanh'`. Values:
//!
//! | text | value |
//! |---|---|
//! | `f32[2, 3]` | a tensor of normal numbers (integers from -9 to 9, random bools) |
//! | `f32[2, 3]<[1, 2]` | the same with these strides |
//! | `i64[5]{0..3}` | numbers from the half-open range, also for floats |
//! | `1`, `-2.5`, `inf`, `True`, `None`, `'text'` | themselves |
//! | `[1, 2]`, `[f32[2], None]` | a list |
//! | `f32` | a data type |
//! | `channels_last`, `contiguous_format` | a memory format |
//!
//! Data comes from a counter-based generator, so a sample is the same on every run.

use pyrite_ir::{Schema, Value};
use pyrite_tensor::random::CounterGenerator;
use pyrite_tensor::{DType, Layout, MemoryFormat, Storage, Tensor};

/// Why a sample's text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleError {
    /// The byte at which reading stopped.
    pub at: usize,
    /// What was wanted there, or what was wrong.
    pub problem: String,
}

impl std::fmt::Display for SampleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at byte {} of the sample", self.problem, self.at)
    }
}

impl std::error::Error for SampleError {}

/// Reads a sample and binds it to a schema.
pub fn read(schema: &Schema, text: &str) -> Result<Vec<Value<Tensor>>, SampleError> {
    let mut reader = Reader { text, at: 0, tensors: 0 };
    let (mut args, mut kwargs) = (Vec::new(), Vec::new());
    while !reader.rest().is_empty() {
        match reader.keyword() {
            Some(name) => kwargs.push((name, reader.value()?)),
            None => args.push(reader.value()?),
        }
        if !reader.eat(",") && !reader.rest().is_empty() {
            return reader.fail("expected `,`");
        }
    }
    schema.bind(&args, &kwargs).map_err(|error| SampleError { at: text.len(), problem: error.to_string() })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    tensors: u64,
}

impl<'a> Reader<'a> {
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn fail<T>(&self, problem: &str) -> Result<T, SampleError> {
        Err(SampleError { at: self.at, problem: problem.to_owned() })
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+')))
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn keyword(&mut self) -> Option<String> {
        let start = self.at;
        let name = self.word().to_owned();
        if !name.is_empty() && self.eat("=") {
            return Some(name);
        }
        self.at = start;
        None
    }

    fn value(&mut self) -> Result<Value<Tensor>, SampleError> {
        if self.eat("[") {
            let mut items = Vec::new();
            while !self.eat("]") {
                items.push(self.value()?);
                if !self.eat(",") && !self.rest().starts_with(']') {
                    return self.fail("expected `,` or `]`");
                }
            }
            return Ok(Value::List(items));
        }
        if self.eat("'") {
            let Some(end) = self.rest().find('\'') else { return self.fail("expected the closing quote") };
            let text = &self.text[self.at..self.at + end];
            self.at += end + 1;
            return Ok(text.into());
        }
        let word = self.word();
        if let Some(dtype) = DType::from_abbr(word) {
            return if self.eat("[") { self.tensor(dtype).map(Value::Tensor) } else { Ok(dtype.into()) };
        }
        if let Some(format) = MemoryFormat::from_torch_name(word) {
            return Ok(format.into());
        }
        match word {
            "None" => return Ok(Value::None),
            "True" => return Ok(true.into()),
            "False" => return Ok(false.into()),
            "inf" => return Ok(f64::INFINITY.into()),
            "-inf" => return Ok(f64::NEG_INFINITY.into()),
            "nan" => return Ok(f64::NAN.into()),
            _ => {}
        }
        match (word.parse::<i64>(), word.parse::<f64>()) {
            (Ok(v), _) => Ok(v.into()),
            (_, Ok(v)) => Ok(v.into()),
            _ => self.fail("expected a value"),
        }
    }

    fn ints(&mut self) -> Result<Vec<i64>, SampleError> {
        let mut sizes = Vec::new();
        while !self.eat("]") {
            let Ok(size) = self.word().parse() else { return self.fail("expected a size") };
            sizes.push(size);
            self.eat(",");
        }
        Ok(sizes)
    }

    fn tensor(&mut self, dtype: DType) -> Result<Tensor, SampleError> {
        let shape = self.ints()?;
        let stride = if self.eat("<[") { self.ints()? } else { Layout::contiguous(&shape).stride.to_vec() };
        let range = if self.eat("{") {
            let start = self.at;
            let Some(end) = self.rest().find('}') else { return self.fail("expected `}`") };
            let inside = &self.text[start..start + end];
            self.at = start + end + 1;
            let bounds =
                inside.split_once("..").and_then(|(a, b)| Some((a.parse::<f64>().ok()?, b.parse::<f64>().ok()?)));
            let Some(bounds) = bounds else { return self.fail("expected a range like 0..3") };
            Some(bounds)
        } else {
            None
        };
        let layout = Layout::new(&shape, &stride, 0);
        let count = layout.span().unwrap_or(0).max(0) as usize;
        let generator = CounterGenerator::new(0x5eed, self.tensors);
        self.tensors += 1;
        let storage = Storage::zeroed(count * dtype.size());
        let flat = Tensor::new(storage.clone(), dtype, Layout::contiguous(&[count as i64]));
        let tensor = Tensor::new(storage, dtype, layout);
        let (Ok(flat), Ok(tensor)) = (flat, tensor) else {
            return self.fail("the sizes and strides describe no tensor");
        };
        fill(&flat, range, &generator);
        Ok(tensor)
    }
}

fn fill(flat: &Tensor, range: Option<(f64, f64)>, generator: &CounterGenerator) {
    let count = flat.numel() as u64;
    match (range, flat.dtype()) {
        (Some((low, high)), dtype) if dtype.is_integral() => {
            let ints: Vec<f64> = (0..count).map(|i| (low + generator.uniform(i) * (high - low)).floor()).collect();
            flat.write_f64s(&ints);
        }
        (Some((low, high)), _) => {
            flat.write_f64s(&(0..count).map(|i| low + generator.uniform(i) * (high - low)).collect::<Vec<_>>());
        }
        (None, DType::Bool) => {
            flat.write_i64s(&(0..count).map(|i| i64::from(generator.uniform(i) < 0.5)).collect::<Vec<_>>());
        }
        (None, dtype) if dtype.is_integral() => {
            let low = if dtype == DType::U8 { 0.0 } else { -9.0 };
            flat.write_f64s(
                &(0..count).map(|i| (low + generator.uniform(i) * (10.0 - low)).floor()).collect::<Vec<_>>(),
            );
        }
        (None, dtype) if dtype.is_complex() => {
            let pairs: Vec<_> = (0..count)
                .map(|i| pyrite_tensor::Complex64::new(generator.normal(2 * i), generator.normal(2 * i + 1)))
                .collect();
            flat.write_c128s(&pairs);
        }
        (None, _) => flat.write_f64s(&(0..count).map(|i| generator.normal(i)).collect::<Vec<_>>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        Schema::parse("aten::x(Tensor a, int[2] b=1, *, str c='n') -> Tensor").unwrap()
    }

    #[test]
    fn a_sample_is_read_and_bound() {
        let args = read(&schema(), "f32[2, 3]<[1, 2], [3, 4], c='tanh'").unwrap();
        let tensor = args[0].as_tensor().unwrap();
        assert_eq!((tensor.shape(), tensor.stride()), (&[2, 3][..], &[1, 2][..]));
        assert!(matches!(&args[1], Value::List(items) if items.len() == 2));
        assert!(matches!(&args[2], Value::Str(text) if &**text == "tanh"));
    }

    #[test]
    fn ranges_hold_and_data_is_reproducible() {
        let one = read(&schema(), "i64[100]{2..5}").unwrap();
        let values = one[0].as_tensor().unwrap().to_i64s();
        assert!(values.iter().all(|v| (2..5).contains(v)) && values.contains(&2) && values.contains(&4));
        let two = read(&schema(), "i64[100]{2..5}").unwrap();
        assert_eq!(values, two[0].as_tensor().unwrap().to_i64s());
    }

    #[test]
    fn bad_samples_say_where() {
        assert_eq!(read(&schema(), "f32[2").unwrap_err().at, 5);
        assert!(read(&schema(), "f32[2], wrong=1").unwrap_err().problem.contains("wrong"));
    }
}

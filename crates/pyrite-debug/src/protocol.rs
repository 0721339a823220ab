//! Values as JSON over numbered storages.

use anyhow::{Context as _, Result, anyhow, bail};
use num_complex::Complex64;
use pyrite_ir::{Device, Value};
use pyrite_tensor::{DType, Layout, MemoryFormat, Storage, Tensor};
use serde_json::{Value as Json, json};

/// The storages of a request, and the values over them.
pub struct Decoder {
    storages: Vec<Storage>,
}

impl Decoder {
    /// Takes a request's storages out of its bytes.
    pub fn new(request: &Json, blob: &[u8]) -> Result<Self> {
        let table = request["storages"].as_array().map_or(&[][..], Vec::as_slice);
        let storages = table
            .iter()
            .map(|row| {
                let start = row["offset"].as_u64().context("a storage without an offset")? as usize;
                let size = row["nbytes"].as_u64().context("a storage without a size")? as usize;
                let bytes = start.checked_add(size).and_then(|end| blob.get(start..end));
                Ok(Storage::from_slice(bytes.context("a storage outside of the request's bytes")?))
            })
            .collect::<Result<_>>()?;
        Ok(Self { storages })
    }

    /// The same over storages that are there already: the first ones of the table are these, and get their content.
    pub fn over(request: &Json, blob: &[u8], own: &[Storage]) -> Result<Self> {
        let mut decoder = Self::new(request, blob)?;
        for (own, found) in own.iter().zip(&mut decoder.storages) {
            if own.nbytes() != found.nbytes() {
                bail!("a storage of {} bytes came back with {}", own.nbytes(), found.nbytes());
            }
            own.write::<u8>().copy_from_slice(&found.to_bytes());
            *found = own.clone();
        }
        Ok(decoder)
    }

    /// A list of values.
    pub fn values(&self, json: &Json) -> Result<Vec<Value<Tensor>>> {
        json.as_array().context("expected a list of values")?.iter().map(|v| self.value(v)).collect()
    }

    /// A value.
    pub fn value(&self, json: &Json) -> Result<Value<Tensor>> {
        if json.is_null() {
            return Ok(Value::None);
        }
        let object = json.as_object().filter(|o| o.len() == 1).with_context(|| format!("not a value: {json}"))?;
        let (kind, item) = object.iter().next().context("an empty value")?;
        let text = || item.as_str().with_context(|| format!("{kind} wants a text"));
        Ok(match kind.as_str() {
            "tensor" => Value::Tensor(self.tensor(item)?),
            "int" => item.as_i64().context("an int that does not fit 64 bits")?.into(),
            "float" => float(item)?.into(),
            "bool" => item.as_bool().context("not a bool")?.into(),
            "str" => text()?.into(),
            "complex" => Complex64::new(float(&item[0])?, float(&item[1])?).into(),
            "dtype" => DType::from_abbr(text()?).with_context(|| format!("unknown dtype {item}"))?.into(),
            "device" => Device::from_name(text()?).into(),
            "layout" => Value::Layout(text()?.into()),
            "memory_format" => MemoryFormat::from_torch_name(text()?).context("unknown memory format")?.into(),
            "list" => Value::List(self.values(item)?),
            other => bail!("unknown kind of value {other}"),
        })
    }

    fn tensor(&self, json: &Json) -> Result<Tensor> {
        let ints = |name: &str| -> Result<Vec<i64>> {
            let list = json[name].as_array().with_context(|| format!("a tensor without {name}"))?;
            list.iter()
                .map(|v| v.as_i64().with_context(|| format!("a tensor's {name} is not a list of ints")))
                .collect()
        };
        let dtype = json["dtype"].as_str().and_then(DType::from_abbr).context("a tensor of an unknown dtype")?;
        let index = json["storage"].as_u64().context("a tensor without a storage")? as usize;
        let storage = self.storages.get(index).context("a tensor with a storage that is not there")?;
        let offset = json["offset"].as_i64().unwrap_or(0);
        Ok(Tensor::new(storage.clone(), dtype, Layout::new(&ints("shape")?, &ints("stride")?, offset))?)
    }
}

fn float(json: &Json) -> Result<f64> {
    match json {
        Json::Number(number) => number.as_f64().ok_or_else(|| anyhow!("not a float: {number}")),
        Json::String(text) => Ok(text.parse()?),
        other => bail!("not a float: {other}"),
    }
}

/// Collects the storages of an answer.
pub struct Encoder {
    storages: Vec<Storage>,
}

impl Encoder {
    /// A result as JSON, the table of its storages, and their bytes.
    pub fn encode(decoder: &Decoder, result: &Value<Tensor>) -> (Json, Json, Vec<u8>) {
        let mut encoder = Self { storages: decoder.storages.clone() };
        let output = encoder.value(result);
        let (mut table, mut blob) = (Vec::new(), Vec::new());
        for storage in &encoder.storages {
            table.push(json!({"offset": blob.len(), "nbytes": storage.nbytes()}));
            blob.extend_from_slice(&storage.to_bytes());
        }
        (output, Json::Array(table), blob)
    }

    fn value(&mut self, value: &Value<Tensor>) -> Json {
        match value {
            Value::None => Json::Null,
            Value::Tensor(tensor) => json!({"tensor": self.tensor(tensor)}),
            Value::Bool(v) => json!({"bool": v}),
            Value::Int(v) => json!({"int": v.as_int()}),
            Value::Float(v) => json!({"float": float_text(*v)}),
            Value::Complex(v) => json!({"complex": [float_text(v.re), float_text(v.im)]}),
            Value::Str(v) => json!({"str": &**v}),
            Value::DType(v) => json!({"dtype": v.abbr()}),
            Value::Device(v) => json!({"device": v.to_string()}),
            Value::Layout(v) => json!({"layout": &**v}),
            Value::MemoryFormat(v) => json!({"memory_format": v.torch_name()}),
            Value::List(items) => json!({"list": items.iter().map(|v| self.value(v)).collect::<Vec<_>>()}),
            Value::Slice(parts) => json!({"slice": parts.iter().map(|v| self.value(v)).collect::<Vec<_>>()}),
            Value::Graph(name) => json!({"graph": &**name}),
        }
    }

    fn tensor(&mut self, tensor: &Tensor) -> Json {
        let found = self.storages.iter().position(|s| s.same(tensor.storage()));
        let storage = found.unwrap_or_else(|| {
            self.storages.push(tensor.storage().clone());
            self.storages.len() - 1
        });
        json!({
            "dtype": tensor.dtype().abbr(),
            "shape": tensor.shape(),
            "stride": tensor.stride(),
            "offset": tensor.layout().offset,
            "storage": storage,
        })
    }
}

/// JSON has no infinities; they travel as text.
fn float_text(value: f64) -> Json {
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

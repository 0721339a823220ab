//! Where a program's tensors are put.

use std::path::Path;

use pyrite_ir::Device;
use pyrite_reader::Devices;

/// Where a program's tensors are put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DevicePlacement {
    /// On the CPU.
    Cpu,
    /// Where the file has them.
    File,
    /// All on this device.
    On(Device),
}

impl DevicePlacement {
    /// Where nobody says it: where the file has them, if this machine has a GPU.
    pub fn usual() -> Self {
        let hidden = std::env::var("CUDA_VISIBLE_DEVICES").is_ok_and(|devices| matches!(&*devices, "" | "-1"));
        let driver = ["/dev/nvidiactl", "/dev/dxg", "/dev/kfd"].iter().any(|path| Path::new(path).exists());
        if driver && !hidden { Self::File } else { Self::Cpu }
    }
}

impl std::str::FromStr for DevicePlacement {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let (kind, index) = name.split_once(':').unwrap_or((name, "0"));
        match name {
            "cpu" => Ok(Self::Cpu),
            "file" => Ok(Self::File),
            _ if ["cuda", "xpu", "mps", "hpu"].contains(&kind) && index.parse::<u32>().is_ok() => {
                Ok(Self::On(Device::from_name(&format!("{kind}:{index}"))))
            }
            _ => Err("write `cpu`, `file`, or a device such as `cuda:0`".to_owned()),
        }
    }
}

impl From<DevicePlacement> for Devices {
    fn from(place: DevicePlacement) -> Self {
        match place {
            DevicePlacement::Cpu => Self::Cpu,
            DevicePlacement::File => Self::AsWritten,
            DevicePlacement::On(device) => Self::On(device),
        }
    }
}

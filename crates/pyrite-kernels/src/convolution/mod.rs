//! Convolutions.
//!
//! All of them come down to three sums over windows: [`forward`] multiplies the weight with the windows of the input,
//! [`into_windows`] spreads a gradient back over the windows, [`onto_weight`] multiplies a gradient with the windows. A
//! transposed convolution is the second with its input in the gradient's place.
//!
//! There are five methods here, and this module chooses by sizes; compiled programs know a sixth, [`winograd`]. Times are milliseconds on one thread of a Zen 4 with
//! AVX-512, forward, gradient of the input, gradient of the weight:
//!
//! | one image | [`direct`] | [`windows`] | `oneDNN` |
//! |---|---|---|---|
//! | 96 groups of 1 channel, 56×56, by 7×7 | 0.61, 0.62, 1.12 | 3.8, 4.6, 3.6 | 0.45, 0.50, 10.4 |
//! | 480 groups of 1 channel, 14×14, by 3×3 | 0.10, 0.12, 0.14 | 0.49, 0.60, 0.51 | 0.10, 0.11, 0.09 |
//! | 32 groups of 4 channels, 56×56, by 3×3 | 0.72, 0.73, 1.2 | 1.1, 1.5, 2.0 | 0.74, 0.75, 2.7 |
//! | 32 groups of 8 channels, 14×14, by 3×3 | 0.20, 0.23, 0.35 | 0.31, 0.35, 0.32 | |
//! | 32 groups of 16 channels, 14×14, by 3×3 | 0.70, 0.84, 1.2 | 0.78, 0.85, 0.75 | |
//! | 64 channels to 1, 8 images of 56×56, by 3×3 | 0.82, 0.97, 1.3 | 3.8, 4.9, 4.1 | |
//! | 3 channels to 64, 4 images of 128×128, by 7×7, stride 2 | 6.7, 5.4, 11 | 5.4, 4.9, 5.8 | 8.7, 16, 3.3 |
//!
//! So few channels are summed directly, and many are a product of matrices. Where images are too small for [`indirect`], more are
//! few: 32 forward and for the input's gradient (four images of 32 groups of 32 channels, 7×7, by 3×3: 1.1 and 1.3 ms against 1.8
//! and 1.9), 16 for the weight's (of 16 channels: 0.60 against 0.73), 8 with a stride (of 16 channels, 14×14: 1.1 against 0.88).
//! Where images are large, three channels are enough to be read in place with a stride of one (one image of 32 groups of 8
//! channels, 28×28, by 3×3: 0.17 and 0.19 ms, directly 0.23 and 0.26). Small images of single channels have their
//! channels side by side instead ([`depthwise`]): four of 1152 channels of 4×4 by 5×5 take 0.16, 0.23 and 0.16 ms against
//! 0.59, 0.87 and 1.0 by direct sums, with a stride of two 0.08, 0.10 and 0.08 against 1.0, 2.0 and 1.3 (oneDNN, forward:
//! 0.15 and 0.14). Many channels made of few are a product
//! too: its matrix has many rows, and copying windows of few channels is cheap (one image of 3 channels, 224×224, to 64 by 3×3: 1.1
//! and 2.1 ms unrolled, 1.6 and 3.4 in place). Windows of images that are not small need not be
//! copied at all for it: see [`indirect`].

pub mod depthwise;
pub mod direct;
mod field;
pub mod indirect;
pub mod points;
pub mod windows;
pub mod winograd;

use crate::gemm::Factor;

/// The sizes of a convolution, spatial ones filled up to three dimensions from the front. "In" and "out" are those of
/// the convolution that is not transposed.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Images.
    pub batch: usize,
    /// Groups of channels that have nothing to do with each other.
    pub groups: usize,
    /// Channels per group.
    pub channels: (usize, usize),
    /// The sizes of an image of the input.
    pub input: [usize; 3],
    /// The sizes of an image of the output.
    pub output: [usize; 3],
    /// The sizes of a window.
    pub kernel: [usize; 3],
    /// How far apart windows are.
    pub stride: [usize; 3],
    /// How many zeros there are around the input.
    pub padding: [usize; 3],
    /// How far apart the elements of a window are.
    pub dilation: [usize; 3],
}

impl Geometry {
    /// Elements of one channel of the input and of the output.
    pub fn planes(&self) -> (usize, usize) {
        (self.input.iter().product(), self.output.iter().product())
    }

    /// Elements of one window over all channels of a group.
    fn window(&self) -> usize {
        self.channels.0 * self.kernel.iter().product::<usize>()
    }

    /// Elements of the weight of one group.
    fn group_weight(&self) -> usize {
        self.channels.1 * self.window()
    }

    /// Whether windows are the input's elements themselves.
    fn is_plain(&self) -> bool {
        self.kernel == [1; 3] && self.stride == [1; 3] && self.padding == [0; 3] && self.input == self.output
    }

    /// Products that are summed up, counting those with the zeros around the input.
    pub fn products(&self) -> usize {
        let outputs = self.batch.saturating_mul(self.groups).saturating_mul(self.planes().1);
        outputs.saturating_mul(self.group_weight())
    }

    fn is_empty(&self) -> bool {
        self.batch * self.group_weight() * self.planes().0 * self.planes().1 == 0
    }

    /// Whether sums may be computed directly, and channels are too few to be summed as a product of matrices: also up to
    /// `in_small` channels of small images.
    fn has_few_channels(&self, in_small: usize) -> bool {
        let (inner, outer) = self.channels;
        let (most, is_small) = (inner.max(outer), self.planes().1 < indirect::POSITIONS);
        let close = self.stride.iter().fold(1, |all: usize, stride| all.saturating_mul(*stride)) <= PHASES;
        let few = outer <= FEW || most <= 2 * FEW || (most <= in_small && is_small);
        few && close && !self.is_empty() && !self.is_plain()
    }

    /// Whether single channels lie side by side.
    fn is_depthwise(&self) -> bool {
        !self.is_empty() && depthwise::suits(self)
    }

    fn method<T: Factor>(&self, sum: Sum) -> Method {
        let (in_small, rows) = match sum {
            Sum::Forward => (8 * FEW, self.channels.1),
            Sum::Input => (8 * FEW, self.channels.0),
            Sum::Weight if self.stride == [1; 3] => (4 * FEW, 0),
            Sum::Weight => (2 * FEW, 0),
        };
        if self.is_of_points() {
            Method::Points
        } else if self.is_depthwise() {
            Method::Depthwise
        } else if self.has_few_channels(in_small) && !indirect::suits_few::<T>(self, rows) {
            Method::Direct
        } else if indirect::suits::<T>(self) && (sum == Sum::Weight || !indirect::is_narrow(self)) {
            Method::Indirect
        } else {
            Method::Windows
        }
    }

    /// Whether sums are short, so that their order matters little.
    pub fn has_short_sums(&self) -> bool {
        !self.is_of_points() && (self.is_depthwise() || self.has_few_channels(4 * FEW))
    }

    /// Whether images and windows have a single position each, so that it is a matmul.
    pub fn is_of_points(&self) -> bool {
        !self.is_empty() && points::suits(self)
    }
}

/// Channels of a group that are few.
const FEW: usize = 4;
/// The most fields that elements a stride apart may make.
const PHASES: usize = 64;

/// Which of the three sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sum {
    Forward,
    Input,
    Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Depthwise,
    Direct,
    Indirect,
    Points,
    Windows,
}

/// The weight times the windows of the input, and the bias added, over what `y` holds.
pub fn forward<T: Factor>(g: &Geometry, x: &[T], weight: &[T], bias: Option<&[T]>, y: &mut [T]) {
    match g.method::<T>(Sum::Forward) {
        Method::Depthwise => depthwise::forward(g, x, weight, bias, y),
        Method::Direct => direct::forward(g, x, weight, bias, y),
        Method::Indirect => indirect::forward(g, x, weight, bias, y),
        Method::Points => points::forward(g, x, weight, bias, y),
        Method::Windows => windows::forward(g, x, weight, bias, y),
    }
}

/// The weight's transpose times `y`, added up over the windows of `x`.
pub fn into_windows<T: Factor>(g: &Geometry, y: &[T], weight: &[T], x: &mut [T]) {
    match g.method::<T>(Sum::Input) {
        Method::Depthwise => depthwise::into_windows(g, y, weight, x),
        Method::Direct => direct::into_windows(g, y, weight, x),
        Method::Indirect => indirect::into_windows(g, y, weight, x),
        Method::Points => points::into_windows(g, y, weight, x),
        Method::Windows => windows::into_windows(g, y, weight, x),
    }
}

/// The sum over the batch of `y` times the windows of `x`.
pub fn onto_weight<T: Factor>(g: &Geometry, y: &[T], x: &[T], weight: &mut [T]) {
    match g.method::<T>(Sum::Weight) {
        Method::Depthwise => depthwise::onto_weight(g, y, x, weight),
        Method::Direct => direct::onto_weight(g, y, x, weight),
        Method::Indirect => indirect::onto_weight(g, y, x, weight),
        Method::Points => points::onto_weight(g, y, x, weight),
        Method::Windows => windows::onto_weight(g, y, x, weight),
    }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//! A compiled program from Rust, without crates. Arguments: an artifact of f32[b, s] with one result of f32, and b and s.
//!
//!     python -c 'import jax, shlo_disc; shlo_disc.compile(jax.nn.softmax, args=(("b, s", "float32"),)).save("softmax.disc")'
//!     lib=$(dirname $(python -c 'import shlo_disc; print(shlo_disc.get_library())'))
//!     rustc score.rs -L $lib -l shlo_disc_runtime -C link-arg=-Wl,-rpath,$lib && ./score softmax.disc 2 3

use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

#[repr(C)]
struct LoadOptions {
    struct_size: usize,
    trust: i32,
    threads: i32,
    memory_limit: i64,
    cache_limit: i64,
    memo_bytes: i64,
    borrow: i64,
    cpu: *const c_char,
}

/// DLPack's DLTensor.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

extern "C" {
    fn disc_error_kind(error: *const Opaque) -> *const c_char;
    fn disc_error_text(error: *const Opaque) -> *const c_char;
    fn disc_free_error(error: *mut Opaque);
    fn disc_load(path: *const c_char, options: *const LoadOptions, program: *mut *mut Opaque) -> *mut Opaque;
    fn disc_free_program(program: *mut Opaque);
    fn disc_call(program: *const Opaque, arguments: *const Tensor, count: usize, results: *mut *mut Opaque) -> *mut Opaque;
    fn disc_result(results: *const Opaque, index: usize) -> *const Tensor;
    fn disc_free_results(results: *mut Opaque);
}

/// The error of a function of the library, if it has one.
fn check(error: *mut Opaque) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is ours until it is freed, and its strings live as long.
    unsafe {
        let text = |part: *const c_char| CStr::from_ptr(part).to_string_lossy().into_owned();
        let message = format!("{}: {}", text(disc_error_kind(error)), text(disc_error_text(error)));
        disc_free_error(error);
        Err(message)
    }
}

struct Program(*mut Opaque);

// SAFETY: the library's functions may be called from several threads at once.
unsafe impl Send for Program {}
unsafe impl Sync for Program {}

impl Drop for Program {
    fn drop(&mut self) {
        unsafe { disc_free_program(self.0) }
    }
}

impl Program {
    fn load(path: &str) -> Result<Program, String> {
        let path = CString::new(path).map_err(|error| error.to_string())?;
        let options = LoadOptions {
            struct_size: std::mem::size_of::<LoadOptions>(),
            trust: 1, // we know who made the file
            threads: 0,
            memory_limit: 0,
            cache_limit: 0,
            memo_bytes: 0,
            borrow: 0,
            cpu: null(), // the best level that this processor has
        };
        let mut program = null_mut();
        check(unsafe { disc_load(path.as_ptr(), &options, &mut program) })?;
        Ok(Program(program))
    }

    /// The first result for an argument of f32.
    fn call(&self, elements: &mut [f32], sizes: &[i64]) -> Result<Vec<f32>, String> {
        assert_eq!(elements.len() as i64, sizes.iter().product::<i64>());
        let argument = Tensor {
            data: elements.as_mut_ptr().cast(),
            device: [1, 0],
            ndim: sizes.len() as i32,
            code: 2,
            bits: 32,
            lanes: 1,
            shape: sizes.as_ptr(),
            strides: null(),
            byte_offset: 0,
        };
        let mut results = null_mut();
        check(unsafe { disc_call(self.0, &argument, 1, &mut results) })?;
        // SAFETY: the result lives until `results` is freed; it has no gaps.
        unsafe {
            let result = &*disc_result(results, 0);
            let sizes: &[i64] = if result.ndim == 0 { &[] } else { std::slice::from_raw_parts(result.shape, result.ndim as usize) };
            let count = sizes.iter().product::<i64>() as usize;
            let elements = std::slice::from_raw_parts(result.data as *const f32, count).to_vec();
            disc_free_results(results);
            Ok(elements)
        }
    }
}

fn run() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, b, s] = arguments.as_slice() else {
        return Err("usage: score ARTIFACT b s".into());
    };
    let size = |text: &String| text.parse::<i64>().map_err(|error| error.to_string());
    let sizes = [size(b)?, size(s)?];
    let mut input: Vec<f32> = (0..sizes[0] * sizes[1]).map(|i| i as f32 / 8.0).collect();
    for element in Program::load(path)?.call(&mut input, &sizes)? {
        println!("{element}");
    }
    Ok(())
}

fn main() {
    if let Err(message) = run() {
        eprintln!("{message}");
        std::process::exit(1);
    }
}

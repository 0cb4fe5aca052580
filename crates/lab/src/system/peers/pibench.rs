//! A tree in a shared library, behind the C++ interface of `PiBench`. The function `create_tree`
//! returns an object with five virtual functions.
//!
//! 1. Virtual calls follow the Itanium C++ ABI: the object begins with the address of its table.
//!    The table has two destructors, then the functions in the order of their declaration.
//! 2. If the library exports the names of these functions, they are compared with the expected
//!    names before any call. Some branches of the interface declare others between them.
//! 3. `std::string` in the options is that of GNU's libstdc++ since GCC 5. A library with another
//!    layout reads wrong options; this cannot be detected.
//! 4. Keys and values are words in the byte order of the machine, as in `PiBench`.
//! 5. A library may do anything to the memory of the process. Its answers are checked.

#![expect(unsafe_code, reason = "calls into a shared library, through tables of C++ classes")]

use super::scan::read_all;
use super::site::Site;
use crate::error::{LabError, Result};
use crate::system::{MemoryUse, PoolFile, Session, System};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use std::error::Error;
use std::ffi::CString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An object of a class that is derived from `tree_api`.
#[repr(C)]
struct Object {
    functions: *const Functions,
}

type Destructor = unsafe extern "C-unwind" fn(*mut Object);
type Find = unsafe extern "C-unwind" fn(*mut Object, *const u8, usize, *mut u8) -> u8;
type Put = unsafe extern "C-unwind" fn(*mut Object, *const u8, usize, *const u8, usize) -> u8;
type Remove = unsafe extern "C-unwind" fn(*mut Object, *const u8, usize) -> u8;
type Scan =
    unsafe extern "C-unwind" fn(*mut Object, *const u8, usize, c_int, *mut *mut u8) -> c_int;
type Create = unsafe extern "C-unwind" fn(*const TreeOptions) -> *mut Object;

/// The virtual functions of `tree_api`, in their order.
#[derive(Clone, Copy)]
#[repr(C)]
struct Functions {
    destroy: Destructor,
    delete: Destructor,
    find: Find,
    insert: Put,
    update: Put,
    remove: Remove,
    scan: Scan,
}

/// The C++ struct `tree_options_t`.
#[repr(C)]
struct TreeOptions {
    key_bytes: usize,
    value_bytes: usize,
    pool_path: CppString,
    pool_bytes: usize,
    threads: usize,
}

/// A `std::string` that the library only reads, and that owns no memory.
#[repr(C)]
struct CppString {
    begin: *const c_char,
    length: usize,
    capacity: usize,
    /// The rest of the space for short strings.
    rest: usize,
}

const WORD_BYTES: usize = 8;
const PAIR_BYTES: usize = 2 * WORD_BYTES;

/// A tree and the library that created it.
pub(super) struct Library {
    tree: NonNull<Object>,
    functions: Functions,
    path: PathBuf,
    /// The tree's own pool, if it created one.
    _pool: PoolFile,
    /// The last field, so that the code is still loaded when the tree is dropped.
    _code: libloading::Library,
}

// SAFETY: the interface is for trees that many threads call at once; `threads` of the options is
// their number. The other fields do not change.
unsafe impl Sync for Library {}

/// Returns an error of the library at `path`.
fn library_error(path: &Path, source: impl Into<Box<dyn Error + Send + Sync>>) -> LabError {
    LabError::Peer { name: path.display().to_string(), source: source.into() }
}

/// Returns the message of the operating system, which is the source of the loader's error.
fn cause(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

impl Library {
    /// Loads the library at `path` and creates a tree.
    pub(super) fn load(path: &Path, site: &Site<'_>) -> Result<Self> {
        // A name without a folder would be looked up among the system's libraries.
        let path = std::path::absolute(path)
            .map_err(|source| LabError::File { path: path.to_owned(), source })?;
        // SAFETY: the user named the library, so its initialisers may run (5).
        let library = unsafe { libloading::Library::new(&path) }
            .map_err(|error| library_error(&path, cause(&error)))?;
        // SAFETY: the interface says that a function of this name has this type.
        let create = unsafe { library.get::<Create>(b"create_tree") }
            .map_err(|error| library_error(&path, cause(&error)))?;
        // The pool is removed at the end, so the tree must be the one to create it.
        if site.pool.exists() {
            let path = site.pool.clone();
            return Err(LabError::File { path, source: ErrorKind::AlreadyExists.into() });
        }
        let pool = PoolFile::at(site.pool.clone());
        let text = CString::new(pool.path().as_os_str().as_bytes())
            .map_err(|error| library_error(&path, error))?;
        let length = text.as_bytes().len();
        let options = TreeOptions {
            key_bytes: WORD_BYTES,
            value_bytes: WORD_BYTES,
            pool_path: CppString { begin: text.as_ptr(), length, capacity: length, rest: 0 },
            pool_bytes: site.pool_bytes as usize,
            threads: site.threads as usize,
        };
        // SAFETY: the options live until the call returns, and have the layout of the interface
        // (3).
        let tree = unsafe { create(&raw const options) };
        let tree =
            NonNull::new(tree).ok_or_else(|| library_error(&path, "`create_tree` gave no tree"))?;
        // SAFETY: a tree begins with the address of its table (1).
        let table = unsafe { tree.read() }.functions;
        expect_functions(table).map_err(|text| library_error(&path, text))?;
        // SAFETY: the table has these functions (1), as far as this can be checked (2).
        let functions = unsafe { table.read() };
        Ok(Self { tree, functions, _pool: pool, path, _code: library })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: `create_tree` created the tree, and no session uses it any more.
        unsafe { (self.functions.delete)(self.tree.as_ptr()) }
    }
}

/// The functions behind the destructors, as they occur in mangled names.
const MANGLED: [&str; 5] = ["4find", "6insert", "6update", "6remove", "4scan"];
/// The number of destructors: one keeps the memory, one frees it.
const DESTRUCTORS: usize = 2;

/// # Errors
/// The library exports the name of a function of `table`, and it is not the expected one.
fn expect_functions(table: *const Functions) -> core::result::Result<(), String> {
    for (index, expected) in MANGLED.iter().enumerate() {
        let place = table.cast::<*const c_void>().wrapping_add(DESTRUCTORS + index);
        // SAFETY: a table has at least the functions that the interface declares, each a word (1).
        let function = unsafe { place.read() };
        if let Some(name) = name_of(function)
            && !name.contains(expected)
        {
            let of = &expected[1..];
            return Err(format!("`{name}` stands where the supported interface has `{of}`"));
        }
    }
    Ok(())
}

/// Returns the name of the symbol that begins at `address`, if its library exports it.
fn name_of(address: *const c_void) -> Option<String> {
    let mut found = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: `dladdr` accepts any address, and writes its answer to `found`.
    let known = unsafe { libc::dladdr(address, &raw mut found) } != 0;
    if !known || found.dli_sname.is_null() || found.dli_saddr.cast_const() != address {
        return None;
    }
    // SAFETY: the name ends with a zero byte and lives while the library is loaded, as it is now.
    let name = unsafe { CStr::from_ptr(found.dli_sname) };
    Some(name.to_string_lossy().into_owned())
}

impl System for Library {
    type Session<'a> = LibrarySession<'a>;

    fn sessions(&mut self, threads: u64) -> Vec<LibrarySession<'_>> {
        (0..threads).map(|_| LibrarySession { library: self }).collect()
    }
    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        Ok(None)
    }
}

/// The session of a thread that uses the tree.
pub(super) struct LibrarySession<'a> {
    library: &'a Library,
}

impl LibrarySession<'_> {
    fn put(&self, put: Put, key: u64, value: u64) -> bool {
        let (tree, key, value) = (self.library.tree, key.to_ne_bytes(), value.to_ne_bytes());
        // SAFETY: key and value have the lengths that are passed and live during the call.
        let done =
            unsafe { put(tree.as_ptr(), key.as_ptr(), WORD_BYTES, value.as_ptr(), WORD_BYTES) };
        done != 0
    }
}

impl Session for LibrarySession<'_> {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let (find, tree) = (self.library.functions.find, self.library.tree);
        let (key, mut value) = (key.to_ne_bytes(), [0; WORD_BYTES]);
        // SAFETY: the key lives during the call, and the value has the size that the options name.
        let found = unsafe { find(tree.as_ptr(), key.as_ptr(), WORD_BYTES, value.as_mut_ptr()) };
        Ok((found != 0).then(|| u64::from_ne_bytes(value)))
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        for (&key, value) in keys.iter().zip(values) {
            *value = self.get(key)?;
        }
        Ok(())
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        Ok(self.put(self.library.functions.insert, key, value))
    }
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        Ok(self.put(self.library.functions.update, key, value))
    }
    fn remove(&mut self, key: u64) -> Result<bool> {
        let (remove, tree) = (self.library.functions.remove, self.library.tree);
        let key = key.to_ne_bytes();
        // SAFETY: the key lives during the call.
        Ok(unsafe { remove(tree.as_ptr(), key.as_ptr(), WORD_BYTES) } != 0)
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        let (scan, tree) = (self.library.functions.scan, self.library.tree);
        let (key, mut begin) = (key.to_ne_bytes(), ptr::null_mut());
        let wanted = c_int::try_from(length).unwrap_or(c_int::MAX);
        // SAFETY: the key and the variable for the address of the pairs live during the call.
        let count =
            unsafe { scan(tree.as_ptr(), key.as_ptr(), WORD_BYTES, wanted, &raw mut begin) };
        if count == 0 {
            return Ok(0);
        }
        let count = usize::try_from(count).ok().filter(|&n| n <= length && !begin.is_null());
        let count = count.ok_or_else(|| {
            library_error(&self.library.path, format!("a scan of {length} gave no pairs"))
        })?;
        // SAFETY: the library returned this number of pairs. They stay unchanged until the next
        // scan of this thread.
        let bytes = unsafe { core::slice::from_raw_parts(begin, count * PAIR_BYTES) };
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        let pairs = bytes.chunks_exact(PAIR_BYTES).map(|pair| {
            let (key, value) = pair.split_at(WORD_BYTES);
            (word(key), word(value))
        });
        Ok(read_all(pairs, length))
    }
}

//! A cache for files that each proof of a circuit reads: the widths and the plan of the circuit's wires.
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::error::{io, Result};

struct File<T> {
    path: PathBuf,
    size: u64,
    modified: SystemTime,
    content: Arc<T>,
}

/// The contents of a limited number of files. An entry is valid while its file has the same size and time.
pub struct FileCache<T> {
    maximum: usize,
    files: Mutex<Vec<File<T>>>,
}

impl<T> FileCache<T> {
    pub const fn new(maximum: usize) -> Self {
        let files = Mutex::new(Vec::new());
        Self { maximum, files }
    }

    /// The result of `make` for a file, computed now or by an earlier call. If the cache is full, the oldest entry is dropped.
    pub fn read(&self, path: &Path, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let metadata = std::fs::metadata(path).map_err(io(path))?;
        let (size, modified) = (metadata.len(), metadata.modified().map_err(io(path))?);
        let lock = || self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |f: &&File<T>| f.path == path && f.size == size && f.modified == modified;
        if let Some(file) = lock().iter().find(same) {
            return Ok(Arc::clone(&file.content));
        }
        // Without the lock, so that proofs of other circuits do not wait.
        let content = Arc::new(make()?);
        let mut files = lock();
        files.retain(|file| file.path != path);
        if files.len() == self.maximum {
            files.remove(0);
        }
        files.push(File {
            path: path.to_owned(),
            size,
            modified,
            content: Arc::clone(&content),
        });
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_once_it_has_changed_or_given_way() {
        let folder = std::env::temp_dir().join(format!("kept-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let paths = ["a", "b", "c"].map(|name| folder.join(name));
        let write = |path: &Path, text: &str| std::fs::write(path, text).expect("a file");
        let cache = FileCache::new(2);
        let mut made = 0;
        let mut read = |path: &Path| {
            let make = || {
                made += 1;
                std::fs::read_to_string(path).map_err(io(path))
            };
            let content = cache.read(path, make).expect("the file is there");
            (content.to_string(), made)
        };
        let is = |text: &str, made| (text.to_owned(), made);
        for path in &paths {
            write(path, "x");
        }
        assert_eq!(read(&paths[0]), is("x", 1));
        assert_eq!(read(&paths[0]), is("x", 1));
        write(&paths[0], "longer");
        assert_eq!(read(&paths[0]), is("longer", 2));
        assert_eq!(read(&paths[1]), is("x", 3));
        // The cache has two entries, and a third file does not get the content of the first.
        assert_eq!(read(&paths[0]), is("longer", 3));
        assert_eq!(read(&paths[2]), is("x", 4));
        assert_eq!(read(&paths[1]), is("x", 4));
        assert_eq!(read(&paths[0]), is("longer", 5));
        std::fs::remove_dir_all(&folder).expect("the folder");
        let gone = cache.read(&paths[0], || Ok(String::new()));
        assert!(gone.is_err());
    }
}

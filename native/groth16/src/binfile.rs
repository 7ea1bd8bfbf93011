//! The container of circom and snarkjs: magic, version, and numbered sections with their lengths.
//!
//! Reading is strict: every section lies inside the file, occurs once, and nothing follows the last one.
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{io, malformed, Result};
use crate::field::le64;

/// Bytes at an offset: of a file, or of a buffer in memory.
pub trait ReadAt: Sync {
    fn size(&self) -> std::io::Result<u64>;
    fn read_at(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()>;
}

impl ReadAt for File {
    fn size(&self) -> std::io::Result<u64> {
        Ok(self.metadata()?.len())
    }
    fn read_at(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.read_exact_at(out, offset)
    }
}

impl ReadAt for &[u8] {
    fn size(&self) -> std::io::Result<u64> {
        Ok(self.len() as u64)
    }
    fn read_at(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        let eof = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let start = usize::try_from(offset).map_err(|_| eof())?;
        let end = start.checked_add(out.len()).ok_or_else(eof)?;
        out.copy_from_slice(self.get(start..end).ok_or_else(eof)?);
        Ok(())
    }
}

/// One section: where it starts in the file and how many bytes it has.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    pub offset: u64,
    pub size: u64,
}

/// An open container file.
pub struct Sections<R> {
    source: R,
    name: PathBuf,
    table: BTreeMap<u32, Section>,
}

const MAX_SECTIONS: u32 = 64;

impl Sections<File> {
    pub fn open(path: &Path, magic: &[u8; 4], max_version: u32) -> Result<Self> {
        let file = File::open(path).map_err(io(path))?;
        Self::scan(file, path, magic, max_version)
    }
}

impl<R: ReadAt> Sections<R> {
    /// Read the table of sections.
    ///
    /// `name` is the name of the input in errors.
    pub fn scan(source: R, name: &Path, magic: &[u8; 4], max_version: u32) -> Result<Self> {
        let total = source.size().map_err(io(name))?;
        let place = name.display().to_string();
        let mut head = [0u8; 12];
        if total < 12 {
            return malformed(
                place,
                format!("the file is truncated: it has {total} bytes"),
            );
        }
        source.read_at(0, &mut head).map_err(io(name))?;
        if &head[..4] != magic {
            return malformed(
                place,
                format!("the file is not a .{} file", String::from_utf8_lossy(magic)),
            );
        }
        let version = le32(&head[4..8]);
        if version == 0 || version > max_version {
            return malformed(
                place,
                format!("expected a version of 1 to {max_version}, found {version}"),
            );
        }
        let count = le32(&head[8..12]);
        if count > MAX_SECTIONS {
            return malformed(
                place,
                format!("expected at most {MAX_SECTIONS} sections, found {count}"),
            );
        }
        let mut table = BTreeMap::new();
        let mut offset = 12u64;
        for _ in 0..count {
            let mut head = [0u8; 12];
            if total - offset < 12 {
                return malformed(
                    place,
                    format!("the file is truncated at byte {total}, in the header of a section"),
                );
            }
            source.read_at(offset, &mut head).map_err(io(name))?;
            offset += 12;
            let id = le32(&head[..4]);
            let size = le64(&head[4..]);
            if size > total - offset {
                return malformed(
                    place,
                    format!("the file is truncated at byte {total}, in section {id}"),
                );
            }
            if table.insert(id, Section { offset, size }).is_some() {
                return malformed(place, format!("section {id} occurs twice"));
            }
            offset += size;
        }
        if offset != total {
            return malformed(
                place,
                format!("there are {} bytes after the last section", total - offset),
            );
        }
        Ok(Self {
            source,
            name: name.to_path_buf(),
            table,
        })
    }

    /// The name of the input in errors.
    pub fn name(&self) -> String {
        self.name.display().to_string()
    }

    pub fn place(&self, what: &str) -> String {
        format!("{}: {what}", self.name())
    }

    pub fn has(&self, id: u32) -> bool {
        self.table.contains_key(&id)
    }

    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.table.keys().copied()
    }

    pub fn section(&self, id: u32) -> Result<Section> {
        match self.table.get(&id) {
            Some(s) => Ok(*s),
            None => malformed(self.name(), format!("section {id} is missing")),
        }
    }

    /// A section that must have exactly `size` bytes.
    pub fn sized(&self, id: u32, size: u64) -> Result<Section> {
        let s = self.section(id)?;
        if s.size != size {
            return malformed(
                self.place(&format!("section {id}")),
                format!("expected {size} bytes, found {}", s.size),
            );
        }
        Ok(s)
    }

    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.source.read_at(offset, out).map_err(io(&self.name))
    }

    /// A whole (small) section.
    pub fn bytes(&self, s: Section) -> Result<Vec<u8>> {
        let mut out = vec![0u8; s.size as usize];
        self.read(s.offset, &mut out)?;
        Ok(out)
    }
}

/// A cursor over bytes in memory; a read beyond the end returns an error.
pub struct Cursor<'a> {
    data: &'a [u8],
    place: String,
}

impl<'a> Cursor<'a> {
    pub fn new(data: &'a [u8], place: String) -> Self {
        Self { data, place }
    }
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        if n > self.data.len() {
            return malformed(self.place.clone(), "the data are truncated");
        }
        let (head, tail) = self.data.split_at(n);
        self.data = tail;
        Ok(head)
    }
    /// A cursor over the next `n` bytes.
    pub fn part(&mut self, n: usize) -> Result<Cursor<'a>> {
        Ok(Cursor::new(self.take(n)?, self.place.clone()))
    }
    pub fn u32(&mut self) -> Result<u32> {
        Ok(le32(self.take(4)?))
    }
    pub fn u64(&mut self) -> Result<u64> {
        Ok(le64(self.take(8)?))
    }
    pub fn remaining(&self) -> usize {
        self.data.len()
    }
    pub fn end(&self) -> Result<()> {
        if self.data.is_empty() {
            return Ok(());
        }
        malformed(
            self.place.clone(),
            format!("there are {} bytes after the end", self.data.len()),
        )
    }
    pub fn fail<T>(&self, reason: impl Into<String>) -> Result<T> {
        malformed(self.place.clone(), reason)
    }
}

pub fn le32(b: &[u8]) -> u32 {
    b.iter()
        .rev()
        .fold(0, |acc, &byte| acc << 8 | u32::from(byte))
}

/// Writes a container under a temporary name, and renames it once it is complete and on disk. A crash or a full disk
/// therefore never leaves an incomplete key under the final name.
pub struct Writer {
    out: Option<BufWriter<File>>,
    partial: PathBuf,
    target: PathBuf,
    position: u64,
    section_start: u64,
}

impl Writer {
    pub fn create(path: &Path, magic: &[u8; 4], version: u32, sections: u32) -> Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let partial = PathBuf::from(name);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&partial)
            .map_err(io(path))?;
        let mut writer = Self {
            out: Some(BufWriter::with_capacity(1 << 20, file)),
            partial,
            target: path.to_path_buf(),
            position: 0,
            section_start: 0,
        };
        writer.write(magic)?;
        writer.write(&version.to_le_bytes())?;
        writer.write(&sections.to_le_bytes())?;
        Ok(writer)
    }

    fn inner(&mut self) -> &mut BufWriter<File> {
        self.out.as_mut().expect("present until finish or drop")
    }

    pub fn write(&mut self, data: &[u8]) -> Result<()> {
        let target = self.target.clone();
        self.inner().write_all(data).map_err(io(&target))?;
        self.position += data.len() as u64;
        Ok(())
    }

    /// Start a section; its length is filled in by `end`.
    pub fn begin(&mut self, id: u32) -> Result<()> {
        self.write(&id.to_le_bytes())?;
        self.write(&0u64.to_le_bytes())?;
        self.section_start = self.position;
        Ok(())
    }

    /// End the section, and return its place in the file.
    pub fn end(&mut self) -> Result<Section> {
        let section = Section {
            offset: self.section_start,
            size: self.position - self.section_start,
        };
        let target = self.target.clone();
        let end = self.position;
        let out = self.inner();
        out.seek(SeekFrom::Start(section.offset - 8))
            .map_err(io(&target))?;
        out.write_all(&section.size.to_le_bytes())
            .map_err(io(&target))?;
        out.seek(SeekFrom::Start(end)).map_err(io(&target))?;
        Ok(section)
    }

    /// Read bytes that were written earlier.
    pub fn read_back(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        let target = self.target.clone();
        let inner = self.inner();
        inner.flush().map_err(io(&target))?;
        inner
            .get_ref()
            .read_exact_at(out, offset)
            .map_err(io(&target))
    }

    pub fn finish(mut self) -> Result<()> {
        let target = self.target.clone();
        let mut out = self.out.take().expect("present until finish or drop");
        out.flush()
            .and_then(|()| out.get_ref().sync_all())
            .and_then(|()| fs::rename(&self.partial, &target))
            .map_err(|source| {
                let _ = fs::remove_file(&self.partial);
                io(&target)(source)
            })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.out.is_some() {
            let _ = fs::remove_file(&self.partial);
        }
    }
}

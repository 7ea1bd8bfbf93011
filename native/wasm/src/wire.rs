//! Arguments and results as bytes: integers and floats of 8 bytes, everything else behind its length in 4, little-endian.

/// An error of the caller, or the reason why a proof is invalid: Python's `ValueError`.
pub type Outcome<T> = Result<T, String>;

/// The arguments of one call, read in their order.
pub struct Arguments<'a>(&'a [u8]);

impl<'a> Arguments<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self, count: usize) -> Outcome<&'a [u8]> {
        let (head, rest) = self
            .0
            .split_at_checked(count)
            .ok_or("the arguments end too early")?;
        self.0 = rest;
        Ok(head)
    }

    fn word(&mut self) -> Outcome<[u8; 8]> {
        self.take(8)?.try_into().map_err(|_| String::new())
    }

    fn length(&mut self) -> Outcome<usize> {
        let bytes = self.take(4)?.try_into().map_err(|_| String::new())?;
        Ok(u32::from_le_bytes(bytes) as usize)
    }

    pub fn bytes(&mut self) -> Outcome<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    pub fn text(&mut self) -> Outcome<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|e| e.to_string())
    }

    pub fn array(&mut self, field: &str) -> Outcome<[u8; 32]> {
        let bytes = self.bytes()?;
        let actual = bytes.len();
        let refused = |_| format!("{field}: expected 32 bytes, found {actual} bytes");
        bytes.try_into().map_err(refused)
    }

    pub fn integer(&mut self) -> Outcome<i64> {
        Ok(i64::from_le_bytes(self.word()?))
    }

    /// An integer of a type that may be smaller than the sent type.
    pub fn number<T: TryFrom<i64>>(&mut self) -> Outcome<T> {
        let number = self.integer()?;
        T::try_from(number).map_err(|_| format!("{number} is out of range"))
    }

    pub fn float(&mut self) -> Outcome<f64> {
        Ok(f64::from_le_bytes(self.word()?))
    }

    pub fn list<T>(&mut self, item: impl Fn(&mut Self) -> Outcome<T>) -> Outcome<Vec<T>> {
        let count = self.length()?;
        (0..count).map(|_| item(self)).collect()
    }

    /// A list of one item or of none.
    pub fn optional<T>(&mut self, item: impl Fn(&mut Self) -> Outcome<T>) -> Outcome<Option<T>> {
        Ok(self.list(item)?.into_iter().next())
    }

    pub fn end(self) -> Outcome<()> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(format!("{more} bytes follow the arguments")),
        }
    }
}

/// The results of one call.
#[derive(Default)]
pub struct Results(Vec<u8>);

impl Results {
    fn length(&mut self, length: usize) {
        self.0.extend((length as u32).to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend(bytes);
    }

    pub fn integer(&mut self, x: i64) {
        self.0.extend(x.to_le_bytes());
    }

    pub fn float(&mut self, x: f64) {
        self.0.extend(x.to_le_bytes());
    }

    pub fn list<T>(&mut self, items: &[T], each: impl Fn(&mut Self, &T)) {
        self.length(items.len());
        items.iter().for_each(|item| each(self, item));
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

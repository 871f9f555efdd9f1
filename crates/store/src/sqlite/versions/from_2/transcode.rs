//! Bytes of rows whose names and nodes get other numbers.

use crate::error::StoreError;
use crate::rows::bytes::{In, Out};

/// Gives a name or node of the old tables its new number.
type Renumber<'a> = &'a mut dyn FnMut(i64) -> Result<i64, StoreError>;

/// The kind of cell whose name ends with a text.
const TAG: u8 = 14;

/// What a node has besides its columns, and its generation; either may be missing.
type Extra = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Copies the bytes of one row.
pub(super) struct Transcoder<'b> {
    read: In<'b>,
    out: Out,
}

impl<'b> Transcoder<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { read: In::new(bytes, "a row of version 2"), out: Out::default() }
    }

    fn byte(&mut self) -> Result<u8, StoreError> {
        let byte = self.read.byte()?;
        self.out.byte(byte);
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, StoreError> {
        let number = self.read.number()?;
        self.out.number(number);
        Ok(number)
    }

    fn numbers(&mut self, count: u64) -> Result<(), StoreError> {
        (0..count).try_for_each(|_| self.number().map(drop))
    }

    fn fixed(&mut self, len: usize) -> Result<(), StoreError> {
        let bytes = self.read.slice(len)?;
        self.out.fixed(bytes);
        Ok(())
    }

    fn text(&mut self) -> Result<(), StoreError> {
        let text = self.read.text()?;
        self.out.text(&text);
        Ok(())
    }

    fn renumbered(&mut self, renumber: Renumber<'_>) -> Result<(), StoreError> {
        let number = renumber(self.read.signed()?)?;
        self.out.signed(number);
        Ok(())
    }

    /// What a node has besides its columns; its generation apart, which has a column now.
    pub(super) fn extra(mut self, name: Renumber<'_>) -> Result<Extra, StoreError> {
        let parts = self.read.byte()?;
        self.out.byte(parts & 15);
        if parts & 1 != 0 {
            self.fixed(16 + 32)?;
            self.numbers(3)?;
        }
        if parts & 2 != 0 && self.byte()? == 4 {
            self.text()?;
        }
        if parts & 4 != 0 {
            for _ in 0..3 {
                self.renumbered(name)?;
            }
            self.fixed(1 + 32)?;
            if self.byte()? != 0 {
                self.fixed(32)?;
            }
            let numbers = if self.byte()? == 0 { 1 } else { 2 };
            self.numbers(numbers)?;
        }
        if parts & 8 != 0 {
            for _ in 0..self.number()? {
                self.fixed(1 + 16 + 32)?;
            }
        }
        let generation = if parts & 16 == 0 { None } else { Some(self.read.slice(16)?.to_vec()) };
        Ok((Some(self.out.0).filter(|_| parts & 15 != 0), generation))
    }

    /// The body of an operation record.
    pub(super) fn operation(mut self, name: Renumber<'_>, node: Renumber<'_>) -> Result<Vec<u8>, StoreError> {
        let flags = self.byte()?;
        // When: a number with its sign, which is copied as it is written.
        self.number()?;
        self.renumbered(name)?;
        if flags & 1 != 0 {
            self.renumbered(name)?;
        }
        self.numbers(2)?;
        match self.byte()? {
            0 | 1 => {}
            2 => self.numbers(1)?,
            3 => {
                let count = self.number()?;
                self.numbers(count + 1)?;
            }
            4 => self.numbers(2)?,
            _ => return Err(self.read.damaged()),
        }
        for _ in 0..self.number()? {
            self.key(name, node)?;
            self.value(node)?;
            self.value(node)?;
        }
        for _ in 0..self.number()? {
            self.key(name, node)?;
        }
        if flags & 2 == 0 {
            for _ in 0..self.number()? {
                self.fixed(16 + 32)?;
            }
        }
        Ok(self.out.0)
    }

    fn key(&mut self, name: Renumber<'_>, node: Renumber<'_>) -> Result<(), StoreError> {
        let first = self.byte()?;
        if first & 1 != 0 {
            self.renumbered(name)?;
        }
        if first >> 1 & 3 != 0 {
            self.node(node)?;
        }
        if first >> 3 == TAG { self.text() } else { Ok(()) }
    }

    fn value(&mut self, node: Renumber<'_>) -> Result<(), StoreError> {
        match self.byte()? {
            0 | 1 => Ok(()),
            2 | 3 => self.node(node),
            4 => self.fixed(1),
            5 => self.text(),
            6 => self.numbers(1),
            7 => {
                let based = u64::from(self.byte()? != 0);
                let count = self.number()?;
                (0..based + count).try_for_each(|_| self.node(node))
            }
            8 => {
                self.node(node)?;
                self.numbers(1)
            }
            _ => Err(self.read.damaged()),
        }
    }

    /// A node by its id, or by how far its number is from the operation's first.
    fn node(&mut self, node: Renumber<'_>) -> Result<(), StoreError> {
        if self.byte()? == 0 { self.fixed(16) } else { self.renumbered(node) }
    }
}

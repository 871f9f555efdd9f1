//! Files that go along with what is said: texts, pictures, sounds (spec: agent §2 *Media*).
//!
//! What a file is its first bytes say. Its name only ever speaks against it: a file that is called a picture and is
//! none is refused rather than sent as the text it may be.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use context::TargetModel;
use loom::plan::NewText;
use loom::{Author, Block, Digest, Role, Trust};
use media::{MediaKind, PictureError};
use model::ModelInfo;
use text::terminal::one_line;
use workspace::Accept;

use super::Conversation;
use super::sessions::masked_name;
use crate::app::App;
use crate::app::input::argument_name;
use crate::error::CommandError;
use text::bytes::size;

/// Endings of names of pictures and sounds, those that models do not take among them.
const CALLED_MEDIA: [&str; 20] = [
    "png", "apng", "jpg", "jpeg", "jpe", "gif", "webp", "bmp", "tif", "tiff", "ico", "heic", "heif", "avif",
    "wav", "mp3", "m4a", "aac", "ogg", "flac",
];

/// A file that goes along.
#[derive(Debug, Clone)]
pub(super) struct Attached {
    pub(super) text: NewText,
    /// What of it is no text.
    pub(super) medium: Option<Medium>,
    /// Where it lies, if it waits for the session; none for a file of one call.
    pub(super) waits_as: Option<PathBuf>,
    /// Where it lies, the same however it was named; none for a file of one call.
    pub(super) lies_at: Option<PathBuf>,
}

/// A picture or a sound that goes along.
#[derive(Debug, Clone)]
pub(super) struct Medium {
    /// The file's name, for people.
    name: String,
    kind: MediaKind,
    /// Bytes of the picture or sound, as they are sent.
    pub(super) bytes: Bytes,
}

impl Attached {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or is too large; when it is a picture that cannot be sent, or neither picture, sound
    /// nor text.
    pub(super) fn read(app: &App, path: &Path, accept: Accept) -> Result<Self, CommandError> {
        Self::of(app, path, app.file_bytes(path, accept)?)
    }

    /// What was handed over at standard input with the call; none where nothing was.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(super) fn piped(app: &App) -> Result<Option<Self>, CommandError> {
        app.piped_bytes()?.map(|bytes| Self::of(app, Path::new("-"), bytes)).transpose()
    }

    fn of(app: &App, path: &Path, bytes: Vec<u8>) -> Result<Self, CommandError> {
        let name = argument_name(path.file_name().map_or(path, Path::new));
        let name = masked_name(app, &name).into_owned();
        let plain = text::frame::plain_name(&name);
        let (text, medium) = match media::detect(&bytes) {
            Some(kind) if kind.is_sound() => {
                let bytes = sound(&name, bytes)?;
                let text = format!("Sound {plain}, {}, {}:", kind.name(), size(bytes.len() as u64));
                (text, Some(Medium { name, kind, bytes }))
            }
            Some(_) => {
                let limit = app.settings.limits.picture;
                let picture =
                    media::import_picture(&bytes, limit).map_err(|why| refused(&name, &why, limit))?;
                let text = format!("Picture {plain}, {}:", picture.dimensions);
                (text, Some(Medium { name, kind: picture.kind, bytes: picture.bytes.into() }))
            }
            None if is_called_media(path) => return Err(refused(&name, &PictureError::NoPicture, 0)),
            None => {
                let text = app.text_of(&argument_name(path), bytes)?;
                let masked = app.runtime.masker.mask_entering(&text);
                if !masked.spans.is_empty() {
                    app.frontend.note(&format!("what looks like a secret was masked in {}", one_line(&name)));
                }
                let text = masked.text;
                let fence = text::frame::fence(&text);
                let framed = format!("File {plain}:\n{fence}\n{text}\n{fence}");
                app.fits_node(&one_line(&name), &framed, false)?;
                (framed, None)
            }
        };
        let shows = medium.as_ref().map(Medium::block);
        let text = NewText {
            content: [Block::text(text)].into_iter().chain(shows).collect(),
            author: Author::owner(),
            role: Some(Role::User),
            // What stands in a file is not the owner's word (spec: security §3).
            trust: Trust::Outside,
        };
        Ok(Self { text, medium, waits_as: None, lies_at: None })
    }

    /// The file with the place it lies at; `waits_as` is none where it does not wait for the session.
    pub(super) fn waiting(self, path: &Path, waits_as: Option<PathBuf>) -> Self {
        Self { waits_as, lies_at: path.canonicalize().ok(), ..self }
    }

    /// Refuses what a model does not take.
    fn admit(&self, info: &ModelInfo) -> Result<(), CommandError> {
        let Some(medium) = &self.medium else { return Ok(()) };
        let target = TargetModel::of(info);
        let (takes, says, what, key) = if medium.kind.is_sound() {
            (target.sounds, info.audio, "sounds", "audio")
        } else {
            (target.pictures, info.images, "pictures", "images")
        };
        if takes {
            return Ok(());
        }
        let (model, name) = (info.full_name(), one_line(&medium.name));
        let hint = if says {
            format!("its API has no form for {what}: name another model with --model")
        } else {
            format!(
                "name a model that takes them with --model; if this one does, set models.\"{model}\".{key} = true in \
                 config.toml"
            )
        };
        Err(CommandError::new(
            "not_taken",
            2,
            format!("{} takes no {what}: {name} and your message were not sent", one_line(&model)),
            hint,
        ))
    }
}

impl Medium {
    fn block(&self) -> Block {
        let (blob, mime) = (Digest::of(&self.bytes), self.kind.mime().to_owned());
        if self.kind.is_sound() { Block::Audio { blob, mime } } else { Block::Image { blob, mime } }
    }
}

impl Conversation {
    /// Sends a file along with the next thing that is said; without one, takes back those that wait. A file that is
    /// attached again is sent once, as it is now.
    pub(crate) async fn attach(&mut self, app: &App, path: Option<&Path>) -> Result<(), CommandError> {
        let Some(path) = path else {
            let count = std::mem::take(&mut self.attached).len();
            app.frontend.note(&match count {
                0 => "no file was waiting".to_owned(),
                count => format!("files removed: {count}"),
            });
            return Ok(());
        };
        let path = &*in_home(path);
        // A pipe or standard input would be waited for while nothing else is heard.
        let file = Attached::read(app, path, Accept::Regular)?;
        if file.medium.is_some() {
            file.admit(self.model(app).await?)?;
        }
        let text = loom::content::plain_text(&file.text.content);
        let first = text.lines().next().unwrap_or_default().trim_end_matches(':').to_owned();
        app.frontend.note(&format!("{} will be sent with your next message", one_line(&first)));
        // A path with a known secret is not written down: the file goes along in this conversation alone.
        let waits_as = std::path::absolute(path).ok();
        let waits_as =
            waits_as.filter(|path| app.runtime.masker.mask(&path.to_string_lossy()).spans.is_empty());
        let file = file.waiting(path, waits_as);
        match self.attached.iter_mut().find(|old| old.lies_at.is_some() && old.lies_at == file.lies_at) {
            Some(old) => *old = Attached { waits_as: old.waits_as.take().or(file.waits_as), ..file },
            None => self.attached.push(file),
        }
        Ok(())
    }

    /// Sends what was handed over at standard input along with the next thing that is said.
    pub(super) fn attach_piped(&mut self, app: &App) -> Result<(), CommandError> {
        self.attached.extend(Attached::piped(app)?);
        Ok(())
    }

    /// Refuses files that a model does not take, before anything is written.
    pub(super) fn admit_files(&self, info: &ModelInfo) -> Result<(), CommandError> {
        self.attached.iter().try_for_each(|file| file.admit(info))
    }
}

/// A path that begins with `~/`, below the home folder of whoever types it.
fn in_home(path: &Path) -> Cow<'_, Path> {
    let below = path.strip_prefix("~").ok();
    match below.zip(std::env::var_os("HOME")) {
        Some((below, home)) => Path::new(&home).join(below).into(),
        None => path.into(),
    }
}

fn sound(name: &str, bytes: Vec<u8>) -> Result<Bytes, CommandError> {
    if bytes.len() <= media::MAX_SOUND_BYTES {
        return Ok(bytes.into());
    }
    let limit = size(media::MAX_SOUND_BYTES as u64);
    Err(CommandError::new(
        "too_large",
        2,
        format!("{} is longer than a sound may be ({limit})", one_line(name)),
        "cut it, or save it as MP3",
    ))
}

fn is_called_media(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| CALLED_MEDIA.contains(&ending.as_str()))
}

fn refused(name: &str, why: &PictureError, limit: u64) -> CommandError {
    let name = one_line(name);
    match why {
        PictureError::NoPicture => CommandError::new(
            "unknown_format",
            2,
            format!(
                "{name} has the ending of a picture or a sound, but its first bytes are of no kind that can be sent"
            ),
            "convert it to PNG, JPEG, GIF, WebP, WAV or MP3, or rename it if it is a text",
        ),
        PictureError::TooLarge { .. } => CommandError::new(
            "too_large",
            2,
            format!("{name} was not decoded: {why}, and limits.picture is {limit} pixels"),
            "make it smaller, or raise limits.picture",
        ),
        PictureError::Damaged { .. } => CommandError::new(
            "damaged_picture",
            2,
            format!("{name} was not sent: {}", one_line(&why.to_string())),
            "open it in an image program and save it again",
        ),
    }
}

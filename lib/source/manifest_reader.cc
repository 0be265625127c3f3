// SPDX-License-Identifier: Apache-2.0
#include "source/manifest_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>
#include <memory>
#include <utility>

#include "common/status.h"

namespace devmgr::source {
namespace {

using Outcome = FileReading::Kind;

constexpr int kReadAttempts = 3;

FileSignature SignatureOf(const struct stat& info) {
  constexpr std::int64_t kNanos = 1'000'000'000;
  FileSignature signature;
  signature.device = info.st_dev;
  signature.inode = info.st_ino;
  signature.size = info.st_size;
  signature.modified_ns = info.st_mtim.tv_sec * kNanos + info.st_mtim.tv_nsec;
  signature.changed_ns = info.st_ctim.tv_sec * kNanos + info.st_ctim.tv_nsec;
  return signature;
}

const char* TypeName(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO:
      return "a pipe";
    case S_IFSOCK:
      return "a socket";
    case S_IFBLK:
    case S_IFCHR:
      return "a device";
    default:
      return "something else";
  }
}

FileReading Problem(Outcome kind, std::string text) {
  FileReading reading;
  reading.kind = kind;
  reading.problem = std::move(text);
  return reading;
}

FileReading Failure(const char* what, int error_number) {
  return Problem(Outcome::kFailed,
                 fmt::format("{}: {}", what, ErrnoText(error_number)));
}

/// The path leads nowhere: was the entry removed, or is it a link?
FileReading MissingFile(int directory, const std::string& name) {
  struct stat info;
  if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return Problem(Outcome::kGone, "");
  }
  if (S_ISLNK(info.st_mode)) {
    return Problem(Outcome::kDangling, "symbolic link without a target");
  }
  // It came back in between; there will be an event for that.
  return Problem(Outcome::kUnsettled, "is being replaced");
}

/// Why a file that can be seen is not read, or kText.
FileReading Judge(const struct stat& info, std::size_t max_bytes) {
  if (S_ISDIR(info.st_mode)) return Problem(Outcome::kIgnored, "");
  if (!S_ISREG(info.st_mode)) {
    return Problem(Outcome::kUnusable, fmt::format("not a regular file but {}",
                                                   TypeName(info.st_mode)));
  }
  if (info.st_size > static_cast<off_t>(max_bytes)) {
    return Problem(Outcome::kUnusable,
                   fmt::format("{} bytes, more than the {} that are read",
                               info.st_size, max_bytes));
  }
  return Problem(Outcome::kText, "");
}

/// Reads to the end, or to one byte more than `max_bytes`. 0, or errno.
int ReadAll(int fd, std::size_t size_hint, std::size_t max_bytes,
            std::string* text) {
  text->clear();
  std::size_t filled = 0;
  for (;;) {
    const std::size_t room = std::min(
        max_bytes + 1, filled + std::max<std::size_t>(size_hint + 1, 4096));
    text->resize(room);
    const ssize_t got = ::pread(fd, text->data() + filled, room - filled,
                                static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    filled += static_cast<std::size_t>(got);
    if (got == 0 || filled > max_bytes) break;
  }
  text->resize(filled);
  return 0;
}

/// One try; kUnsettled when the file changed in the meantime.
FileReading ReadOpen(int fd, std::size_t max_bytes) {
  struct stat before;
  if (::fstat(fd, &before) != 0) return Failure("cannot be examined", errno);
  FileReading reading = Judge(before, max_bytes);
  if (reading.kind != Outcome::kText) return reading;
  const int error = ReadAll(fd, static_cast<std::size_t>(before.st_size),
                            max_bytes, &reading.text);
  if (error != 0) return Failure("cannot be read", error);
  struct stat after;
  if (::fstat(fd, &after) != 0) return Failure("cannot be examined", errno);
  reading.signature = SignatureOf(before);
  if (reading.signature != SignatureOf(after) ||
      reading.text.size() > max_bytes) {
    return Problem(Outcome::kUnsettled, "changes while it is read");
  }
  return reading;
}

FileReading ReadOnce(int directory, const std::string& name,
                     const std::optional<FileSignature>& known,
                     std::size_t max_bytes) {
  // Looked at before it is opened: opening a pipe or a device has effects.
  struct stat info;
  if (::fstatat(directory, name.c_str(), &info, 0) != 0) {
    if (errno == ENOENT) return MissingFile(directory, name);
    return Failure("cannot be examined", errno);
  }
  FileReading reading = Judge(info, max_bytes);
  if (reading.kind != Outcome::kText) return reading;
  if (known.has_value() && SignatureOf(info) == *known) {
    reading.kind = Outcome::kUnchanged;
    reading.signature = *known;
    return reading;
  }
  // Not blocking, should a pipe have taken the file's place just now.
  const UniqueFd fd(::openat(directory, name.c_str(),
                             O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT) return MissingFile(directory, name);
    return Failure("cannot be opened", errno);
  }
  return ReadOpen(fd.get(), max_bytes);
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

bool IsManifestName(const std::string& name) {
  if (name.empty() || name[0] == '.') return false;
  const std::string_view view = name;
  return view.ends_with(".yaml") || view.ends_with(".yml") ||
         view.ends_with(".json");
}

absl::StatusOr<DirectoryListing> ListManifests(
    const std::filesystem::path& directory, std::size_t limit) {
  DirectoryListing listing;
  listing.directory.Reset(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!listing.directory.valid()) {
    return ErrnoStatus(errno, "cannot be opened");
  }
  UniqueFd copy(::fcntl(listing.directory.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return ErrnoStatus(errno, "cannot be listed");
  const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(copy.get()));
  if (stream == nullptr) return ErrnoStatus(errno, "cannot be listed");
  copy.Release();  // the stream owns it now
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(stream.get());
    if (entry == nullptr) {
      if (errno != 0) return ErrnoStatus(errno, "cannot be listed");
      return listing;
    }
    std::string name = entry->d_name;
    if (!IsManifestName(name)) continue;
    listing.names.insert(std::move(name));
    if (listing.names.size() <= limit) continue;
    listing.names.erase(std::prev(listing.names.end()));
    ++listing.left_out;
  }
}

FileReading ReadManifest(int directory, const std::string& name,
                         const std::optional<FileSignature>& known,
                         std::size_t max_bytes) {
  FileReading reading;
  for (int i = 0; i < kReadAttempts; ++i) {
    reading = ReadOnce(directory, name, known, max_bytes);
    if (reading.kind != Outcome::kUnsettled) break;
  }
  return reading;
}

void AwaitRenames(int directory) {
  // The kernel renames and tells under the directory's lock, and listing takes
  // that lock; opening a file does not.
  char entries[1024];
  ::lseek(directory, 0, SEEK_SET);
  ::syscall(SYS_getdents64, directory, entries, sizeof(entries));
}

std::vector<FilePlace> FollowLinks(int directory,
                                   const std::filesystem::path& directory_path,
                                   const std::string& name) {
  std::vector<FilePlace> places;
  std::filesystem::path link = directory_path / name;
  std::string target(PATH_MAX, '\0');
  ssize_t length =
      ::readlinkat(directory, name.c_str(), target.data(), target.size());
  while (length > 0 && static_cast<std::size_t>(length) < target.size()) {
    // Not normalised: `..` behind a symbolic link is not its lexical parent.
    link = link.parent_path() / target.substr(0, length);
    if (!link.has_filename()) break;
    places.push_back({link.parent_path(), link.filename().string()});
    if (places.size() >= kMaxLinks) break;
    length = ::readlink(link.c_str(), target.data(), target.size());
  }
  return places;
}

bool IsBlank(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  constexpr std::string_view kSpace(" \t\r\n\0", 5);
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(3);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("---") || line.starts_with("...")) {
      line.remove_prefix(3);
    }
    if (line.find_first_not_of(kSpace) != std::string_view::npos) return false;
  }
  return true;
}

}  // namespace devmgr::source

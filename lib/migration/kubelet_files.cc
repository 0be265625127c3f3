// SPDX-License-Identifier: Apache-2.0
#include "migration/kubelet_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "checkpoint/kubelet/checksum.h"
#include "checkpoint/kubelet/dra_state_file.h"
#include "checkpoint/kubelet/json_field.h"
#include "common/atomic_file.h"
#include "common/status.h"
#include "common/unique_fd.h"

namespace devmgr::migration {
namespace {

namespace fs = std::filesystem;
using kubelet_checkpoint::kMaxFileBytes;

absl::Status Failed(std::string_view doing, const fs::path& path) {
  const int error = errno;
  return ErrnoStatus(error, fmt::format("{} '{}'", doing, path.string()));
}

struct Content {
  std::string bytes;
  std::int64_t modified_ms = 0;
};

absl::StatusOr<std::string> ReadAll(int fd, const fs::path& path) {
  constexpr std::size_t kStep = std::size_t{1} << 16;
  std::string bytes;
  for (;;) {
    const std::size_t had = bytes.size();
    if (had > kMaxFileBytes) return bytes;
    bytes.resize(had + kStep);
    const ssize_t got = ::read(fd, bytes.data() + had, kStep);
    if (got < 0 && errno != EINTR) return Failed("cannot read", path);
    bytes.resize(had + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got == 0) return bytes;
  }
}

/// Nothing when it is not there. DataLoss for what is no file, or is too large.
absl::StatusOr<std::optional<Content>> ReadIfAny(const fs::path& path) {
  // What another program has put there may be a pipe that is never written.
  const UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid() && (errno == ENOENT || errno == ENOTDIR)) {
    return std::optional<Content>();
  }
  if (!fd.valid()) return Failed("cannot open", path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return Failed("cannot look at", path);
  if (!S_ISREG(status.st_mode)) return DataLossError("it is no regular file");
  Content content;
  content.modified_ms = std::int64_t{status.st_mtim.tv_sec} * 1'000 +
                        status.st_mtim.tv_nsec / 1'000'000;
  DEVMGR_ASSIGN_OR_RETURN(content.bytes, ReadAll(fd.get(), path));
  if (content.bytes.size() > kMaxFileBytes) {
    return DataLossError("it has more than {} bytes", kMaxFileBytes);
  }
  return std::optional<Content>(std::move(content));
}

/// Reads the file at `path` and has `take` decode it. What is wrong with the
/// file is kept, what is wrong with the disk is returned.
template <typename Take>
absl::Status ReadInto(const fs::path& path, KubeletFiles& files, bool* found,
                      Take take) {
  auto content = ReadIfAny(path);
  if (absl::IsDataLoss(content.status())) {
    *found = true;
    files.damaged.push_back({path, content.status(), std::nullopt});
    return absl::OkStatus();
  }
  if (!content.ok()) return content.status();
  if (!content->has_value()) {
    files.notes.push_back(
        fmt::format("'{}' is not there: none of what a kubelet keeps in it is "
                    "known",
                    path.string()));
    return absl::OkStatus();
  }
  *found = true;
  absl::Status status = take(**content);
  if (!status.ok()) {
    files.damaged.push_back({path, std::move(status), (*content)->bytes});
  }
  return absl::OkStatus();
}

absl::Status TakeDevices(const Content& content, KubeletFiles& files) {
  DEVMGR_ASSIGN_OR_RETURN(
      files.state.devices,
      kubelet_checkpoint::DecodeDeviceCheckpoint(content.bytes));
  files.devices_ms = content.modified_ms;
  return absl::OkStatus();
}

absl::Status TakeClaims(const Content& content, KubeletFiles& files) {
  DEVMGR_ASSIGN_OR_RETURN(
      kubelet_checkpoint::DraStateFile file,
      kubelet_checkpoint::DecodeDraStateFile(content.bytes));
  files.claims_ms = content.modified_ms;
  if (auto* today = std::get_if<kubelet_checkpoint::DraCheckpoint>(&file)) {
    files.state.claims = std::move(*today);
    return absl::OkStatus();
  }
  const auto& old = std::get<kubelet_checkpoint::OldDraCheckpoint>(file);
  if (!old.is_checksum_proven) {
    files.notes.push_back(fmt::format(
        "{}: the checksum of this old layout depends on the release of the "
        "kubelet and was not proven",
        kubelet_checkpoint::kDraStateName));
  }
  files.state.claims = kubelet_checkpoint::Upgraded(old);
  return absl::OkStatus();
}

/// What is to be there in the end, without a slash behind it.
fs::path Cleaned(const fs::path& directory) {
  fs::path clean = directory.lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();
  return clean;
}

absl::Status CheckIsFree(const fs::path& directory) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(directory, error);
  if (status.type() == fs::file_type::not_found) return absl::OkStatus();
  if (status.type() == fs::file_type::directory &&
      fs::is_empty(directory, error) && !error) {
    return absl::OkStatus();
  }
  return FailedPreconditionError(
      "'{}' is not an empty directory: files are exported only into a new or "
      "an empty one, and copied from there",
      directory.string());
}

absl::Status SyncDirectory(const fs::path& directory) {
  const UniqueFd fd(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Failed("cannot open", directory);
  if (::fsync(fd.get()) != 0) return Failed("cannot sync", directory);
  return absl::OkStatus();
}

absl::Status MoveIntoPlace(const fs::path& from, const fs::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    return Failed("cannot make", to);
  }
  const fs::path parent = to.parent_path();
  return SyncDirectory(parent.empty() ? fs::path(".") : parent);
}

std::string_view KindText(fs::file_type type) {
  switch (type) {
    case fs::file_type::regular:
      return "a file";
    case fs::file_type::directory:
      return "a directory";
    case fs::file_type::symlink:
      return "a symbolic link";
    default:
      return "neither a file nor a directory";
  }
}

absl::Status InTheWay(const fs::path& path, fs::file_type type) {
  return FailedPreconditionError(
      "'{}' is {} that no export has left, and is not removed: move it away, "
      "since exports are made in its place, or export to another directory",
      path.string(), KindText(type));
}

/// Whether WriteFileAtomically makes files of the name `entry` for `file`:
/// `FILE` or `FILE.XXXXXX.tmp`.
bool IsMadeFor(std::string_view entry, std::string_view file) {
  constexpr std::string_view kTemporary = ".XXXXXX.tmp";
  if (entry == file) return true;
  return entry.size() == file.size() + kTemporary.size() &&
         entry.starts_with(file) && entry[file.size()] == '.' &&
         entry.ends_with(".tmp");
}

/// FailedPrecondition for an entry of which `is_ours`, which gets its name and
/// type, says no. A directory that is not there has none.
template <typename IsOurs>
absl::Status CheckEntries(const fs::path& directory, IsOurs is_ours) {
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  while (!error && entries != fs::directory_iterator()) {
    const fs::path& path = entries->path();
    const fs::file_type type = entries->symlink_status(error).type();
    if (error) break;
    if (!is_ours(path.filename().string(), type)) return InTheWay(path, type);
    entries.increment(error);
  }
  if (!error || error == std::errc::no_such_file_or_directory) {
    return absl::OkStatus();
  }
  return ErrnoStatus(error.value(),
                     fmt::format("cannot list '{}'", directory.string()));
}

absl::Status RemoveDirectory(const fs::path& directory) {
  if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) {
    return absl::OkStatus();
  }
  return Failed("cannot remove", directory);
}

/// Removes what a writer has left at `partial`; what may be a person's stays.
///   FailedPrecondition  something there is not of a writer; all of it stays
absl::Status RemoveLeftovers(const fs::path& partial) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(partial, error).type();
  if (type == fs::file_type::not_found) return absl::OkStatus();
  if (type == fs::file_type::none) {
    return ErrnoStatus(error.value(),
                       fmt::format("cannot look at '{}'", partial.string()));
  }
  if (type != fs::file_type::directory) return InTheWay(partial, type);
  const fs::path devices = DevicesIn(partial);
  const fs::path claims = ClaimsIn(partial);
  const fs::path below = devices.parent_path();
  DEVMGR_RETURN_IF_ERROR(CheckEntries(
      partial, [&](const std::string& name, fs::file_type entry_type) {
        if (name == below.filename()) {
          return entry_type == fs::file_type::directory;
        }
        return entry_type == fs::file_type::regular &&
               IsMadeFor(name, kubelet_checkpoint::kDraStateName);
      }));
  DEVMGR_RETURN_IF_ERROR(CheckEntries(
      below, [](const std::string& name, fs::file_type entry_type) {
        return entry_type == fs::file_type::regular &&
               IsMadeFor(name, kubelet_checkpoint::kDeviceCheckpointName);
      }));
  DEVMGR_RETURN_IF_ERROR(RemoveFile(devices));
  DEVMGR_RETURN_IF_ERROR(RemoveDirectory(below));
  DEVMGR_RETURN_IF_ERROR(RemoveFile(claims));
  return RemoveDirectory(partial);
}

}  // namespace

fs::path DevicesIn(const fs::path& directory) {
  return directory / "device-plugins" /
         kubelet_checkpoint::kDeviceCheckpointName;
}

fs::path ClaimsIn(const fs::path& directory) {
  return directory / kubelet_checkpoint::kDraStateName;
}

absl::Status NoKubeletFilesError(const fs::path& directory) {
  return NotFoundError(
      "there are no checkpoint files of a kubelet in '{}': neither '{}' nor "
      "'{}'",
      directory.string(), DevicesIn("").string(), ClaimsIn("").string());
}

absl::StatusOr<KubeletFiles> ReadKubeletFiles(const fs::path& directory) {
  KubeletFiles files;
  bool found = false;
  DEVMGR_RETURN_IF_ERROR(ReadInto(
      DevicesIn(directory), files, &found,
      [&](const Content& content) { return TakeDevices(content, files); }));
  DEVMGR_RETURN_IF_ERROR(ReadInto(
      ClaimsIn(directory), files, &found,
      [&](const Content& content) { return TakeClaims(content, files); }));
  if (found) return files;
  return NoKubeletFilesError(directory);
}

absl::StatusOr<std::optional<std::string>> ReadFileIfAny(const fs::path& file) {
  DEVMGR_ASSIGN_OR_RETURN(std::optional<Content> content, ReadIfAny(file));
  if (!content.has_value()) return std::optional<std::string>();
  return std::optional<std::string>(std::move(content->bytes));
}

absl::StatusOr<fs::path> KeepBytes(const std::string& bytes,
                                   const fs::path& file,
                                   std::string_view mark) {
  fs::path kept = file;
  kept += fmt::format(".{}-{:08x}", mark, kubelet_checkpoint::Crc32(bytes));
  const absl::Status status =
      WriteFileAtomically(kept, bytes, IfPresent::kFail, FileMode::kPrivate);
  if (!status.ok() && !absl::IsAlreadyExists(status)) return status;
  return kept;
}

absl::StatusOr<std::optional<fs::path>> KeepCopy(const DamagedFile& file,
                                                 const fs::path& directory) {
  if (!file.bytes.has_value()) return std::optional<fs::path>();
  DEVMGR_ASSIGN_OR_RETURN(
      fs::path kept,
      KeepBytes(*file.bytes, directory / file.path.filename(), "damaged"));
  return std::optional<fs::path>(std::move(kept));
}

absl::Status WriteKubeletFiles(const fs::path& directory,
                               const ExportPlan& plan) {
  DEVMGR_ASSIGN_OR_RETURN(
      const std::string devices,
      kubelet_checkpoint::EncodeDeviceCheckpoint(plan.devices));
  DEVMGR_ASSIGN_OR_RETURN(const std::string claims,
                          kubelet_checkpoint::EncodeDraCheckpoint(plan.claims));
  const fs::path place = Cleaned(directory);
  DEVMGR_RETURN_IF_ERROR(CheckIsFree(place));
  fs::path partial = place;
  partial += ".partial";
  DEVMGR_RETURN_IF_ERROR(RemoveLeftovers(partial));
  absl::Status status = WriteFileAtomically(
      DevicesIn(partial), devices, IfPresent::kFail, FileMode::kPrivate);
  if (status.ok()) {
    status = WriteFileAtomically(ClaimsIn(partial), claims, IfPresent::kFail,
                                 FileMode::kPrivate);
  }
  if (status.ok()) status = MoveIntoPlace(partial, place);
  if (!status.ok()) RemoveLeftovers(partial).IgnoreError();
  return status;
}

}  // namespace devmgr::migration

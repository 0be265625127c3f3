// SPDX-License-Identifier: Apache-2.0
#include "endpoint/earlier_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "common/status.h"
#include "common/unique_fd.h"
#include "endpoint/object_files.h"

namespace devmgr::endpoint {
namespace {

namespace fs = std::filesystem;

absl::Status NotWrittenHere(const fs::path& file) {
  return DataLossError(
      "'{}' is not as the endpoint for drivers wrote it; when it is removed, "
      "the driver publishes what it held anew",
      file.string());
}

absl::Status Failed(const char* doing, const fs::path& path, int error) {
  return UnavailableError("cannot {} '{}': {}", doing, path.string(),
                          std::generic_category().message(error));
}

absl::Status SyncFolder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid() && ::fsync(fd.get()) == 0) return absl::OkStatus();
  return Failed("sync", folder, errno);
}

}  // namespace

absl::StatusOr<bool> EarlierFiles::Exist() const {
  std::error_code error;
  const bool exist = fs::exists(folder_, error);
  if (!error) return exist;
  return Failed("look at", folder_, error.value());
}

absl::StatusOr<JournalContent> EarlierFiles::Read() const {
  JournalContent content;
  const auto read = [&](const fs::path& file) -> absl::Status {
    // Left by a kill in a write.
    if (file.extension() == ".tmp") return absl::OkStatus();
    DEVMGR_ASSIGN_OR_RETURN(const std::string text, ReadObjectFile(file));
    std::string_view rest = text;
    JournalEntry entry;
    if (!TakeRevision(rest, entry.revision)) return NotWrittenHere(file);
    content.last_revision = std::max(content.last_revision, entry.revision);
    if (file == folder_ / kLastRevision ||
        file == folder_ / kReservedRevision) {
      return absl::OkStatus();
    }
    entry.key = ObjectKeyOf(file.lexically_relative(folder_));
    entry.value = rest;
    if (entry.key.empty() || rest.empty()) return NotWrittenHere(file);
    content.entries.push_back(std::move(entry));
    return absl::OkStatus();
  };
  DEVMGR_RETURN_IF_ERROR(VisitFilesBelow(folder_, read));
  return content;
}

absl::Status EarlierFiles::Remove() const {
  std::error_code error;
  fs::remove_all(Leftovers(), error);
  if (error) return Failed("remove", Leftovers(), error.value());
  if (::rename(folder_.c_str(), Leftovers().c_str()) != 0) {
    return errno == ENOENT ? absl::OkStatus() : Failed("move", folder_, errno);
  }
  DEVMGR_RETURN_IF_ERROR(SyncFolder(folder_.parent_path()));
  fs::remove_all(Leftovers(), error);
  return error ? Failed("remove", Leftovers(), error.value())
               : absl::OkStatus();
}

fs::path EarlierFiles::Leftovers() const {
  return folder_.string() + ".taken-over";
}

}  // namespace devmgr::endpoint

// SPDX-License-Identifier: Apache-2.0
#include "cdistore/spec_directory.h"

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "cdistore/scanner.h"
#include "cdistore/spec_file.h"
#include "common/status.h"

namespace devmgr::cdistore {

namespace fs = std::filesystem;

std::shared_ptr<const CdiRegistry> ReadSpecFiles(
    const std::vector<fs::path>& directories) {
  CdiCacheOptions options;
  options.directories = directories;
  Scan scan = Scanner(options).Look();
  return std::make_shared<const CdiRegistry>(std::move(scan.files),
                                             std::move(scan.unread));
}

std::vector<std::string> NamesOf(const std::vector<fs::path>& directories) {
  std::vector<std::string> names;
  for (const fs::path& directory : directories) {
    names.push_back(directory.string());
  }
  return names;
}

fs::path AsidePath(const fs::path& file) { return file.string() + ".orphaned"; }

absl::Status SetAside(const CdiSpecFile& file) {
  DEVMGR_ASSIGN_OR_RETURN(
      const Reading now,
      ReadSpecText(file.path, CdiCacheOptions().max_file_bytes));
  if (MakeCdiSpecFile(file.path, file.priority, now.text) != file) {
    return FailedPreconditionError("'{}' has changed and was left alone",
                                   file.path);
  }
  if (::rename(file.path.c_str(), AsidePath(file.path).c_str()) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, fmt::format("cannot rename '{}'", file.path));
}

}  // namespace devmgr::cdistore

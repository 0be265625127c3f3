// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cdi_cache.h>

#include <utility>

#include "cdistore/spec_file.h"
#include "common/atomic_file.h"
#include "common/status.h"

namespace devmgr {
namespace {

absl::StatusOr<std::filesystem::path> SpecPath(
    const std::filesystem::path& directory, std::string_view name) {
  const bool fits = !name.empty() && name.find('/') == std::string_view::npos &&
                    name.find('\0') == std::string_view::npos;
  if (!fits) {
    return InvalidArgumentError("'{}' is no name for a CDI spec file", name);
  }
  if (directory.empty()) {
    return InvalidArgumentError("the directory of CDI spec '{}' has no name",
                                name);
  }
  std::string file(name);
  if (!cdistore::IsSpecName(file)) file += ".yaml";
  return directory / file;
}

}  // namespace

absl::StatusOr<std::filesystem::path> WriteCdiSpec(
    const CdiSpec& spec, const std::filesystem::path& directory,
    std::string_view name, CdiIfPresent if_present) {
  DEVMGR_ASSIGN_OR_RETURN(std::filesystem::path path,
                          SpecPath(directory, name));
  const CdiFormat format =
      path.extension() == ".json" ? CdiFormat::kJson : CdiFormat::kYaml;
  auto text = EncodeCdiSpec(spec, format);
  if (!text.ok()) {
    return WithContext(text.status(), "CDI spec '{}'", path.string());
  }
  DEVMGR_RETURN_IF_ERROR(WriteFileAtomically(path, *text,
                                             if_present == CdiIfPresent::kFail
                                                 ? IfPresent::kFail
                                                 : IfPresent::kReplace));
  return path;
}

absl::Status RemoveCdiSpec(const std::filesystem::path& directory,
                           std::string_view name) {
  DEVMGR_ASSIGN_OR_RETURN(const std::filesystem::path path,
                          SpecPath(directory, name));
  return RemoveFile(path);
}

}  // namespace devmgr

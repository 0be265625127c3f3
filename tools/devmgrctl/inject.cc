// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cdi.h>
#include <fmt/core.h>

#include "commands.h"
#include "resolve_edits.h"

namespace devmgr::ctl {
namespace {

/// What is not found is no object that was named.
absl::Status Refused(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kNotFound) return status;
  return MakeError(absl::StatusCode::kFailedPrecondition, MessageOf(status));
}

}  // namespace

absl::Status Inject(const Session& session) {
  const Options& options = session.options();
  const Environment& environment = session.environment();
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  auto devices = (*inspector)->Resolve(options.name);
  if (!devices.ok()) return devices.status();
  absl::Status status = KeepContainer(options.container, *devices);
  if (!status.ok()) return status;
  const ContainerDevices& container = devices->containers.front();
  if (container.devices_released) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        fmt::format("init container '{}' has given its devices back",
                    container.name));
  }
  const auto config = environment.read_file(options.spec);
  if (!config.ok()) return config.status();
  const auto cache = session.OpenCdi();
  if (!cache.ok()) return cache.status();
  const auto edited =
      InjectIntoOciConfig(*config, container, *(*cache)->Registry());
  if (!edited.ok()) return Refused(edited.status());
  if (!options.out_file.empty()) {
    return environment.replace_file(options.out_file, *edited);
  }
  session.out() << *edited;
  return absl::OkStatus();
}

}  // namespace devmgr::ctl

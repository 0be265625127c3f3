// SPDX-License-Identifier: Apache-2.0
#include "registration/plugin_info.h"

#include "common/status.h"
#include "devmgr/wire/pluginregistration/v1/registration.pb.h"
#include "rpc/message.h"

namespace devmgr::registration {
namespace {

namespace wire = devmgr::wire::pluginregistration::v1;

constexpr int kMaxVersions = 256;
constexpr std::size_t kMaxVersionBytes = 256;
constexpr std::size_t kMaxFieldBytes = 4096;

}  // namespace

absl::StatusOr<Plugin> DecodePluginInfo(const std::string& bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const auto info,
                          rpc::Decode<wire::PluginInfo>(bytes));
  if (info.supported_versions_size() > kMaxVersions) {
    return InvalidArgumentError("plugin lists {} versions, at most {} are read",
                                info.supported_versions_size(), kMaxVersions);
  }
  for (const std::string* field :
       {&info.type(), &info.name(), &info.endpoint()}) {
    if (field->size() > kMaxFieldBytes) {
      return InvalidArgumentError("plugin info has a field of {} bytes",
                                  field->size());
    }
  }
  for (const std::string& version : info.supported_versions()) {
    if (version.size() > kMaxVersionBytes) {
      return InvalidArgumentError("plugin lists a version of {} bytes",
                                  version.size());
    }
  }
  Plugin plugin;
  plugin.type = info.type();
  plugin.name = info.name();
  plugin.endpoint = info.endpoint();
  plugin.supported_versions.assign(info.supported_versions().begin(),
                                   info.supported_versions().end());
  return plugin;
}

}  // namespace devmgr::registration

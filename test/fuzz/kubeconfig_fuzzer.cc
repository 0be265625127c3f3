// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a kubeconfig. Whatever it says, what is shown of it is readable.
// That no credential is shown is a table in test/source/api: here a mutation
// may put the same text where a name or the server stands.
#include <string_view>

#include "common/status.h"
#include "fuzz/fuzz.h"
#include "source/api/kubeconfig.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using devmgr::fuzz::Require;
  using devmgr::fuzz::RequireReadable;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = devmgr::apiserver::ParseKubeconfig(text, "/etc/config");
  if (!config.ok()) {
    RequireReadable(devmgr::MessageOf(config.status()));
    return 0;
  }
  RequireReadable(devmgr::apiserver::DescribeKubeconfig(*config));
  for (const std::string& warning : config->warnings) RequireReadable(warning);
  Require(config->client_certificate.empty() == config->client_key.empty(),
          "certificate and key come together");
  Require(config->IsHttps() || !config->warnings.empty(),
          "there is a warning where nothing is encrypted");
  Require(devmgr::apiserver::WithoutUserInfo(config->server) == config->server,
          "the server has no password in it");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as devmgrd's configuration file. What is read is printed as a file
// that is read as the same; what is not is told with its place.
#include <string>
#include <string_view>

#include "devmgrd/config.h"
#include "fuzz/fuzz.h"

namespace devmgr::fuzz {
namespace {

constexpr char kFile[] = "devmgrd.yaml";

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

void CheckRefusal(const absl::Status& status) {
  Require(status.code() == absl::StatusCode::kInvalidArgument,
          "what cannot be read is invalid");
  RequireReadable(MessageOf(status));
}

void CheckFile(std::string_view text) {
  devmgrd::Config config;
  const absl::Status status = devmgrd::ReadConfig(text, kFile, &config);
  if (!status.ok()) {
    CheckRefusal(status);
    Require(MessageOf(status).starts_with(kFile), "the file is named");
    return;
  }
  const std::string printed = devmgrd::PrintConfig(config);
  devmgrd::Config again;
  Require(devmgrd::ReadConfig(printed, kFile, &again).ok(),
          "what is printed is read");
  Require(again == config, "what is printed means the same");
  const absl::Status checked = devmgrd::CheckConfig(config);
  if (!checked.ok()) {
    CheckRefusal(checked);
    return;
  }
  const devmgr::DeviceManagerOptions options = devmgrd::OptionsOf(config);
  Require(options.state_dir == config.state_dir, "options are the file's");
}

void CheckGates(std::string_view text) {
  devmgrd::Config config;
  const absl::Status status = devmgrd::ReadFeatureGates(text, &config);
  if (!status.ok()) CheckRefusal(status);
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  devmgr::fuzz::CheckFile(text);
  devmgr::fuzz::CheckGates(text.substr(0, text.find('\n')));
  return 0;
}

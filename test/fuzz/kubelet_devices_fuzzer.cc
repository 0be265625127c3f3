// SPDX-License-Identifier: Apache-2.0
//
// The kubelet's checkpoint of devices, as a whole file and as its `Data` with
// the checksum that belongs to it: what is read is written and read again as
// the same, and what is refused says why.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "checkpoint/kubelet/device_checkpoint.h"
#include "common/status.h"
#include "fuzz/fuzz.h"

namespace devmgr::fuzz {
namespace {

/// Whether it was read.
absl::Status CheckDeviceFile(std::string_view file) {
  const auto read = kubelet_checkpoint::DecodeDeviceCheckpoint(file);
  if (!read.ok()) {
    RequireReadable(MessageOf(read.status()));
    return read.status();
  }
  const auto written = kubelet_checkpoint::EncodeDeviceCheckpoint(*read);
  Require(written.ok(), "what was read can be written");
  const auto again = kubelet_checkpoint::DecodeDeviceCheckpoint(*written);
  Require(again.ok() && *again == *read, "what was written is read");
  Require(*kubelet_checkpoint::EncodeDeviceCheckpoint(*again) == *written,
          "one value has one file");
  return absl::OkStatus();
}

/// The checksum that a file with the checksum 0 was expected to have.
std::string ComputedChecksum(const absl::Status& status) {
  // All of it, since other messages quote the input.
  constexpr std::string_view kBefore =
      "kubelet_internal_checkpoint: Checksum: checkpoint is corrupted: 0 in "
      "the file, ";
  const std::string message = MessageOf(status);
  if (!message.starts_with(kBefore)) return {};
  return message.substr(kBefore.size(),
                        message.find(' ', kBefore.size()) - kBefore.size());
}

/// Else no mutation would get past the checksum, and no test would say so.
bool RequireChecksumIsFound() {
  Require(!ComputedChecksum(
               CheckDeviceFile(R"({"Data":{"PodDeviceEntries":null,)"
                               R"("RegisteredDevices":{}},"Checksum":0})"))
               .empty(),
          "the message about a wrong checksum has the right one");
  return true;
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const bool kFound = devmgr::fuzz::RequireChecksumIsFound();
  static_cast<void>(kFound);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(devmgr::fuzz::CheckDeviceFile(text));
  const std::string checksum =
      devmgr::fuzz::ComputedChecksum(devmgr::fuzz::CheckDeviceFile(
          fmt::format(R"({{"Data":{},"Checksum":0}})", text)));
  if (checksum.empty()) return 0;
  const absl::Status status = devmgr::fuzz::CheckDeviceFile(
      fmt::format(R"({{"Data":{},"Checksum":{}}})", text, checksum));
  devmgr::fuzz::Require(status.ok(), "a file with its checksum is read");
  return 0;
}

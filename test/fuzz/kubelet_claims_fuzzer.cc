// SPDX-License-Identifier: Apache-2.0
//
// The kubelet's checkpoint of claims, as a whole file in any of its layouts and
// as the text in its `Data` with the checksum that belongs to it: what is read
// is written and read again as the same, and what is refused says why.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "checkpoint/kubelet/checksum.h"
#include "checkpoint/kubelet/dra_state_file.h"
#include "checkpoint/kubelet/go_writer.h"
#include "common/status.h"
#include "fuzz/fuzz.h"

namespace devmgr::fuzz {
namespace {

using kubelet_checkpoint::DraCheckpoint;
using kubelet_checkpoint::DraStateFile;
using kubelet_checkpoint::OldDraCheckpoint;

void CheckReadAgain(const std::string& written, const DraStateFile& wanted) {
  const auto again = kubelet_checkpoint::DecodeDraStateFile(written);
  Require(again.ok() && *again == wanted, "what was written is read");
}

void CheckClaims(const DraCheckpoint& checkpoint) {
  const auto written = kubelet_checkpoint::EncodeDraCheckpoint(checkpoint);
  Require(written.ok(), "what was read can be written");
  CheckReadAgain(*written, checkpoint);
}

void CheckOldClaims(OldDraCheckpoint old) {
  CheckClaims(kubelet_checkpoint::Upgraded(old));
  old.is_checksum_proven = true;
  const auto written = kubelet_checkpoint::EncodeOldDraCheckpoint(old);
  // A file may say what its layout does not have.
  if (!written.ok()) {
    RequireReadable(MessageOf(written.status()));
    return;
  }
  CheckReadAgain(*written, old);
}

void CheckClaimFile(std::string_view file) {
  const auto read = kubelet_checkpoint::DecodeDraStateFile(file);
  if (!read.ok()) {
    RequireReadable(MessageOf(read.status()));
  } else if (const auto* old = std::get_if<OldDraCheckpoint>(&*read)) {
    CheckOldClaims(*old);
  } else {
    CheckClaims(std::get<DraCheckpoint>(*read));
  }
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  devmgr::fuzz::CheckClaimFile(text);
  devmgr::kubelet_checkpoint::GoJsonWriter file;
  file.Raw(R"({"Data":)");
  file.String(text);
  file.Raw(fmt::format(R"(,"Checksum":{}}})",
                       devmgr::kubelet_checkpoint::Crc32(text)));
  if (const auto bytes = std::move(file).Take("file"); bytes.ok()) {
    devmgr::fuzz::CheckClaimFile(*bytes);
  }
  return 0;
}

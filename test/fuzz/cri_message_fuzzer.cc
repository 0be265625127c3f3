// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as CRI messages. A CreateContainerRequest that can be read can be
// patched, and then says what it said before and what was added.
#include <string>
#include <string_view>

#include "common/status.h"
#include "cri/messages.h"
#include "cri/patch.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using devmgr::fuzz::Require;
  namespace cri = devmgr::cri;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)cri::ReadListContainers(bytes);
  (void)cri::ReadListPodSandbox(bytes);
  (void)cri::ReadRestorePodResponse(bytes);
  (void)cri::ReadRunPodSandbox(bytes);
  (void)cri::ReadStatusInfo(bytes);
  (void)cri::ReadVersion(bytes);

  cri::ConfigEdits edits;
  Require(cri::PatchCreateContainer(bytes, edits).value() == bytes,
          "without edits the bytes are the same");
  edits.env.first = {{"FIRST", "1"}};
  edits.cdi_devices.last = {"v/c=1"};
  if (cri::ReadRestorePod(bytes).ok()) {
    Require(cri::PatchRestorePod(bytes, {edits, edits}).ok(),
            "what can be read can be patched");
  }
  const auto before = cri::ReadCreateContainer(bytes);
  if (!before.ok()) {
    devmgr::fuzz::RequireReadable(devmgr::MessageOf(before.status()));
    return 0;
  }
  const auto patched = cri::PatchCreateContainer(bytes, edits);
  Require(patched.ok(), "what can be read can be patched");
  auto after = cri::ReadCreateContainer(*patched);
  Require(after.ok(), "what was patched can be read");
  Require(after->config.env.size() == before->config.env.size() + 1 &&
              after->config.env.front().name == "FIRST",
          "the first comes first");
  Require(!after->config.cdi_devices.empty() &&
              after->config.cdi_devices.back() == "v/c=1",
          "the last comes last");
  Require(after->sandbox_id == before->sandbox_id &&
              after->sandbox.identity == before->sandbox.identity,
          "the rest stays");
  return 0;
}

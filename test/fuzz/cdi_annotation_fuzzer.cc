// SPDX-License-Identifier: Apache-2.0
//
// Annotations of a container, as lines that alternate between key and value.
// Names come out qualified, all or none; what is made of them reads as them.
#include <absl/strings/str_split.h>
#include <devmgr/cdi_spec.h>

#include <map>
#include <string>
#include <vector>

#include "common/status.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using devmgr::fuzz::Require;
  const std::vector<std::string> lines = absl::StrSplit(
      absl::string_view(reinterpret_cast<const char*>(data), size), '\n');
  std::map<std::string, std::string> annotations;
  for (std::size_t i = 0; i + 1 < lines.size(); i += 2) {
    annotations[lines[i]] = lines[i + 1];
  }
  const auto names = devmgr::ParseCdiAnnotations(annotations);
  if (!names.ok()) {
    devmgr::fuzz::RequireReadable(devmgr::MessageOf(names.status()));
    return 0;
  }
  for (const std::string& name : *names) {
    Require(devmgr::ParseCdiName(name).ok(), "names are qualified");
  }
  std::map<std::string, std::string> made;
  const absl::Status status =
      devmgr::AddCdiAnnotation(lines.front(), lines.back(), *names, made);
  if (!status.ok()) {
    Require(made.empty(), "an error adds nothing");
    devmgr::fuzz::RequireReadable(devmgr::MessageOf(status));
    return 0;
  }
  const auto again = devmgr::ParseCdiAnnotations(made);
  Require(names->empty() ? !again.ok() : again.ok() && *again == *names,
          "what is made reads as the same");
  return 0;
}

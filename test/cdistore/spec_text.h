// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace devmgr::cdistore {

/// A CDI spec of the kind `v.com/c`, each of whose devices sets `env`.
inline std::string SpecText(const std::vector<std::string>& devices,
                            const std::string& env = "A=1") {
  std::string text = "cdiVersion: 0.5.0\nkind: v.com/c\ndevices:\n";
  for (const std::string& device : devices) {
    text += "- name: " + device + "\n  containerEdits: {env: [" + env + "]}\n";
  }
  return text;
}

}  // namespace devmgr::cdistore

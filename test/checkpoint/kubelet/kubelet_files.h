// SPDX-License-Identifier: Apache-2.0
//
// What tests of both checkpoint files share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/luck.h"

namespace devmgr::kubelet_checkpoint {

/// A file of test/data/kubelet, which packages of k8s.io/kubernetes 1.37.2
/// wrote.
std::string KubeletFile(std::string_view name);

/// A text with what Go escapes in JSON, and what it does not.
std::string OddText();

/// Texts, odd ones among them.
std::string RandomText(Luck& luck);

/// Null, empty, or a few texts.
template <typename T = std::string>
std::optional<std::vector<T>> RandomTexts(Luck& luck) {
  std::optional<std::vector<T>> texts;
  if (luck.Chance(20)) return texts;
  texts.emplace();
  for (int left = luck.Below(4); left > 0; --left) {
    texts->push_back(T{RandomText(luck)});
  }
  return texts;
}

}  // namespace devmgr::kubelet_checkpoint

// SPDX-License-Identifier: Apache-2.0
#include "migration/skipped_words.h"

namespace devmgr::migration {
namespace {

constexpr char kAll[] = "*";
constexpr char kPrepare[] = "NodePrepareResources";
constexpr char kUnprepare[] = "NodeUnprepareResources";

}  // namespace

state::SkippedOperations SkippedOf(const std::vector<std::string>& words) {
  state::SkippedOperations skipped;
  for (const std::string& word : words) {
    if (word == kAll || word == kPrepare) skipped.prepare = true;
    if (word == kAll || word == kUnprepare) skipped.unprepare = true;
  }
  return skipped;
}

std::vector<std::string> WordsOf(const state::SkippedOperations& skipped) {
  if (skipped.prepare && skipped.unprepare) return {kAll};
  std::vector<std::string> words;
  if (skipped.prepare) words.emplace_back(kPrepare);
  if (skipped.unprepare) words.emplace_back(kUnprepare);
  return words;
}

}  // namespace devmgr::migration

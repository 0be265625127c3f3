// SPDX-License-Identifier: Apache-2.0
//
// What every fuzzer asks of the code, besides not to crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "api/quote.h"

namespace devmgr::fuzz {

/// Ends the program with a sentence when `holds` is not true.
inline void Require(bool holds, const char* sentence) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", sentence);
  std::abort();
}

/// A text for people: not endless, UTF-8, nothing that drives a terminal.
inline void RequireReadable(std::string_view text, std::size_t limit = 8192) {
  Require(!text.empty(), "a message says something");
  Require(text.size() <= limit, "a message is bounded");
  Require(api::FindInvalidUtf8(text) == std::string_view::npos,
          "a message is UTF-8");
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    Require(!control || c == '\n' || c == '\t',
            "a message has no control characters");
  }
}

}  // namespace devmgr::fuzz

/// What libFuzzer, or replay.cc in its place, calls with each input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size);

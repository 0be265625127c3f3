// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace devmgr {

/// Of a manifest that is refused for one reason.
inline std::string OnlyError(const DecodedManifest& manifest) {
  EXPECT_THAT(manifest.malformed_pods, ::testing::IsEmpty());
  if (manifest.errors.size() != 1) {
    ADD_FAILURE() << manifest.errors.size() << " errors";
    for (const auto& error : manifest.errors) ADD_FAILURE() << error.ToString();
    return "";
  }
  return manifest.errors[0].ToString();
}

}  // namespace devmgr

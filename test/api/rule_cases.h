// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace devmgr {

/// A part of a manifest, and what is wrong with it.
struct RuleCase {
  std::string text;
  std::string problem;
};

/// A manifest without errors, of one object.
inline void ExpectFine(const DecodedManifest& manifest,
                       const std::string& what) {
  for (const ManifestProblem& error : manifest.errors) {
    ADD_FAILURE() << what << ": " << error.ToString();
  }
  EXPECT_THAT(manifest.objects, ::testing::SizeIs(1)) << what;
}

/// `before0after` `before1after` and so on.
inline std::string Numbered(int count, const std::string& before,
                            const std::string& after) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += before;
    text += std::to_string(i);
    text += after;
  }
  return text;
}

/// A ResourceClaim whose fourth line, and the next ones, are `body`.
inline DecodedManifest DecodeClaim(const std::string& body,
                                   const std::string& version = "v1") {
  return DecodeManifest("apiVersion: resource.k8s.io/" + version +
                            "\nkind: ResourceClaim\nmetadata: {name: c}\n" +
                            body + "\n",
                        "claim.yaml");
}

}  // namespace devmgr

// SPDX-License-Identifier: Apache-2.0
//
// What a plugin answered is kept as it came: whoever takes over from us gets
// the plugin's own bytes.
#include "plugin/container_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/api_version.h"
#include "support/status_matchers.h"

namespace devmgr::plugin {
namespace {

using ::testing::HasSubstr;

/// env B=2, env A=1, a CDI device, and a field of a later version: 15, text.
const std::string& Odd() {
  static const std::string bytes = std::string(
                                       "\x0a\x06\x0a\x01"
                                       "B\x12\x01"
                                       "2") +
                                   "\x0a\x06\x0a\x01"
                                   "A\x12\x01"
                                   "1" +
                                   "\x2a\x05\x0a\x03"
                                   "v/c" +
                                   "\x7a\x03"
                                   "new";
  return bytes;
}

TEST(ContainerResponseTest, BytesAreKeptAsTheyCame) {
  const auto edits = DecodeContainerResponse(Odd());
  ASSERT_TRUE(edits.ok()) << edits.status();
  EXPECT_EQ(edits->env[0].name, "A");
  EXPECT_EQ(edits->env[1].value, "2");
  EXPECT_EQ(edits->cdi_devices[0], "v/c");
  EXPECT_EQ(edits->response, Odd());
  EXPECT_EQ(EncodeContainerResponse(*edits), Odd());
}

TEST(ContainerResponseTest, AnAnswerToAllocateHasTheBytesOfItsContainer) {
  std::string answer = "\x0a";
  answer += static_cast<char>(Odd().size());
  answer += Odd();
  const auto edits = ApiVersions()[0].decode_allocate(answer);
  ASSERT_TRUE(edits.ok()) << edits.status();
  EXPECT_EQ(edits->response, Odd());
}

TEST(ContainerResponseTest, EditsWithoutBytesAreWrittenInOrder) {
  device::ContainerEdits edits;
  edits.env = {{"A", "1"}, {"B", ""}};
  edits.mounts = {{"/in", "/out", true}};
  edits.devices = {{"/dev/a", "/dev/b", "rw"}};
  edits.annotations = {{"k", "v"}};
  edits.cdi_devices = {"v.com/c=1"};
  const std::string bytes = EncodeContainerResponse(edits);
  EXPECT_EQ(bytes, EncodeContainerResponse(edits));
  auto again = DecodeContainerResponse(bytes);
  ASSERT_TRUE(again.ok()) << again.status();
  again->response.reset();
  EXPECT_EQ(*again, edits);
}

TEST(ContainerResponseTest, WhatIsNoMessageIsRefused) {
  EXPECT_THAT(DecodeContainerResponse("\x0a\xff").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ContainerAllocateResponse")));
  EXPECT_TRUE(DecodeContainerResponse("").ok());
}

}  // namespace
}  // namespace devmgr::plugin

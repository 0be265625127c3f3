// SPDX-License-Identifier: Apache-2.0
//
// Whether the checkpoint files of a kubelet are whole, and how much they hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/store_support.h"
#include "migration/kubelet_folder.h"
#include "migration/resource_names.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using kubelet_checkpoint::DeviceCheckpoint;
using kubelet_checkpoint::DraCheckpoint;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Checksum = KubeletFile::Checksum;

DeviceCheckpoint SomeDevices() {
  DeviceCheckpoint devices;
  devices.registered.emplace();
  devices.entries = {{HeldEntry("pod-a", "app", kGpu, {"0", "1"}, 0),
                      HeldEntry("pod-a", "init", kGpu, {"0"}, 0),
                      HeldEntry("pod-b", "c", kGpu, {"2"}, 0)}};
  return devices;
}

DraCheckpoint SomeClaims() {
  DraCheckpoint claims;
  claims.claims = {{PreparedClaim("a", "claim-a", kDriver, {"pod-a", "pod-c"}),
                    PreparedClaim("b", "claim-b", kDriver, {"pod-c"})}};
  return claims;
}

/// A file of before 1.31 with one claim, of which this is the checksum.
std::string OldFile(const std::string& handles, const std::string& checksum) {
  return R"({"version":"v1","entries":[{"DriverName":"test-driver.cdi.k8s.io",)"
         R"("ClassName":"class-name",)"
         R"("ClaimUID":"067798be-454e-4be4-9047-1aa06aea63f7",)"
         R"("ClaimName":"example","Namespace":"default","PodUIDs":)"
         R"({"139cdb46-f989-4f17-9561-ca10cfb509a6":{}},)" +
         handles +
         R"("CDIDevices":{"test-driver.cdi.k8s.io":)"
         R"(["example.com/example=cdi-example"]}}],"checksum":)" +
         checksum + "}";
}

class KubeletVerifyTest : public ::testing::Test {
 protected:
  /// The files of devices and of claims; nothing is changed by looking.
  std::vector<KubeletFile> Verify() {
    const auto before = checkpoint::TreeOf(folder_.root());
    const auto files = VerifyKubeletFiles(folder_.kubelet());
    EXPECT_TRUE(files.ok()) << files.status();
    EXPECT_EQ(checkpoint::TreeOf(folder_.root()), before);
    if (!files.ok()) return std::vector<KubeletFile>(2);
    EXPECT_THAT(*files, SizeIs(2));
    return *files;
  }
  KubeletFile OldClaims(const std::string& bytes) {
    folder_.WriteBytes(folder_.claims_file(), bytes);
    return Verify()[1];
  }
  static std::string WithOtherChecksum(std::string bytes) {
    // The last digit: `...9}`.
    char& digit = bytes[bytes.size() - 2];
    digit = digit == '1' ? '2' : '1';
    return bytes;
  }

  KubeletFolder folder_;
};

TEST_F(KubeletVerifyTest, GoodFilesAreCounted) {
  folder_.Write(SomeDevices());
  folder_.Write(SomeClaims());
  const auto files = Verify();
  EXPECT_EQ(files[0].path, folder_.devices_file());
  EXPECT_TRUE(files[0].exists);
  EXPECT_EQ(files[0].checksum, Checksum::kRight);
  EXPECT_EQ(files[0].format, "2");
  EXPECT_EQ(files[0].kubelets, "since 1.20");
  EXPECT_EQ(files[0].pods, 2u);
  EXPECT_EQ(files[0].devices, 4u);
  EXPECT_FALSE(files[0].claims.has_value());
  EXPECT_EQ(files[1].path, folder_.claims_file());
  EXPECT_EQ(files[1].checksum, Checksum::kRight);
  EXPECT_EQ(files[1].format, "checkpoint.dra.kubelet.k8s.io/v1");
  EXPECT_EQ(files[1].kubelets, "since 1.32");
  EXPECT_EQ(files[1].pods, 2u);
  EXPECT_EQ(files[1].claims, 2u);
  EXPECT_EQ(files[1].devices, 2u);
  // As many as an import takes over.
  KubeletImportOptions options = folder_.import_options();
  options.dry_run = true;
  const auto import = ImportKubelet(options);
  ASSERT_TRUE(import.ok()) << import.status();
  EXPECT_EQ(import->devices, files[0].devices);
  EXPECT_EQ(import->claims, files[1].claims);
  EXPECT_THAT(import->damaged, IsEmpty());
}

TEST_F(KubeletVerifyTest, OldLayoutsAreNamed) {
  DeviceCheckpoint devices = SomeDevices();
  devices.format = DeviceCheckpoint::Format::kIdLists;
  folder_.Write(devices);
  EXPECT_EQ(Verify()[0].format, "1");
  EXPECT_EQ(Verify()[0].kubelets, "before 1.20");
  EXPECT_EQ(Verify()[0].checksum, Checksum::kRight);
  const KubeletFile oldest = OldClaims(OldFile("", "153446146"));
  EXPECT_EQ(oldest.checksum, Checksum::kRight);
  EXPECT_EQ(oldest.format, "v1");
  EXPECT_EQ(oldest.kubelets, "before 1.31, without handles");
  EXPECT_EQ(oldest.pods, 1u);
  EXPECT_EQ(oldest.claims, 1u);
  EXPECT_EQ(oldest.devices, 1u);
  const KubeletFile later =
      OldClaims(OldFile(R"("ResourceHandles":null,)", "453625682"));
  EXPECT_EQ(later.checksum, Checksum::kRight);
  EXPECT_EQ(later.kubelets, "before 1.31");
}

// It is no proof of damage, and none that the file is whole.
TEST_F(KubeletVerifyTest, TheChecksumOfAnOldLayoutMayBeUnproven) {
  const KubeletFile file = OldClaims(OldFile("", "1"));
  EXPECT_EQ(file.checksum, Checksum::kNotProven);
  EXPECT_EQ(file.claims, 1u);
  EXPECT_THAT(file.problem, HasSubstr("not proven"));
}

TEST_F(KubeletVerifyTest, AWrongChecksumIsFound) {
  folder_.Write(SomeDevices());
  folder_.Write(SomeClaims());
  for (const auto& path : {folder_.devices_file(), folder_.claims_file()}) {
    folder_.WriteBytes(path, WithOtherChecksum(checkpoint::ReadFile(path)));
  }
  for (const KubeletFile& file : Verify()) {
    EXPECT_TRUE(file.exists);
    EXPECT_EQ(file.checksum, Checksum::kWrong) << file.path;
    EXPECT_THAT(file.problem,
                AllOf(HasSubstr("in the file"), HasSubstr("computed")));
    EXPECT_FALSE(file.pods.has_value());
  }
  KubeletImportOptions options = folder_.import_options();
  options.dry_run = true;
  const auto import = ImportKubelet(options);
  ASSERT_TRUE(import.ok()) << import.status();
  EXPECT_THAT(import->damaged, SizeIs(2));
}

TEST_F(KubeletVerifyTest, AFileCutAtAnyByteIsNotRight) {
  folder_.Write(SomeDevices());
  folder_.Write(SomeClaims());
  const std::string whole = checkpoint::ReadFile(folder_.claims_file());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    folder_.WriteBytes(folder_.claims_file(), whole.substr(0, size));
    const auto files = VerifyKubeletFiles(folder_.kubelet());
    ASSERT_TRUE(files.ok()) << size << ": " << files.status();
    ASSERT_EQ((*files)[0].checksum, Checksum::kRight);
    ASSERT_EQ((*files)[1].checksum, Checksum::kUnknown) << size;
    ASSERT_NE((*files)[1].problem, "");
  }
}

TEST_F(KubeletVerifyTest, WhatIsNoFileIsNotRight) {
  std::filesystem::create_directories(folder_.devices_file());
  const auto files = Verify();
  EXPECT_TRUE(files[0].exists);
  EXPECT_EQ(files[0].checksum, Checksum::kUnknown);
  EXPECT_THAT(files[0].problem, HasSubstr("no regular file"));
  EXPECT_FALSE(files[1].exists);
}

TEST_F(KubeletVerifyTest, OneFileMayBeMissingButNotBoth) {
  EXPECT_THAT(VerifyKubeletFiles(folder_.kubelet()).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no checkpoint files of a kubelet in")));
  EXPECT_THAT(VerifyKubeletFiles("").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("kubelet_dir is empty")));
  folder_.Write(SomeDevices());
  const auto files = Verify();
  EXPECT_EQ(files[0].checksum, Checksum::kRight);
  EXPECT_FALSE(files[1].exists);
  EXPECT_EQ(files[1].path, folder_.claims_file());
  EXPECT_EQ(files[1].problem, "");
}

}  // namespace
}  // namespace devmgr

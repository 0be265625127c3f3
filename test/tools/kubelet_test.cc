// SPDX-License-Identifier: Apache-2.0
//
// devmgrctl import kubelet, export kubelet, verify kubelet.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/temp_folder.h"
#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KubeletTest : public CommandLineTest {
 protected:
  KubeletTest() {
    import_kubelet_ = [this](const KubeletImportOptions& options)
        -> absl::StatusOr<KubeletImport> {
      imported_ = options;
      KubeletImport result;
      result.pods = 2;
      result.devices = 1;
      result.claims = 3;
      result.adopted = 2;
      result.losses = losses_;
      result.damaged = damaged_;
      result.notes = {"a note"};
      result.written =
          !options.dry_run && (losses_.empty() || options.accept_losses);
      return result;
    };
    export_kubelet_ = [this](const KubeletExportOptions& options)
        -> absl::StatusOr<KubeletExport> {
      exported_ = options;
      KubeletExport result;
      result.pods = 1;
      result.losses = losses_;
      result.written =
          !options.dry_run && (losses_.empty() || options.accept_losses);
      return result;
    };
  }

  KubeletImportOptions imported_;
  KubeletExportOptions exported_;
  std::vector<std::string> losses_;
  std::vector<std::filesystem::path> damaged_;
};

TEST_F(KubeletTest, ImportSaysWhatWasTakenOver) {
  const Result result =
      Run({"--state-dir", "/s", "import", "kubelet", "/var/lib/kubelet"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "imported 2 pods with 1 device and 3 claims (2 as prepared) into "
            "the ledger in '/s'\n");
  EXPECT_THAT(result.err, HasSubstr("a note"));
  EXPECT_EQ(imported_.state_dir, "/s");
  EXPECT_EQ(imported_.kubelet_dir, "/var/lib/kubelet");
  EXPECT_FALSE(imported_.dry_run);
  EXPECT_FALSE(imported_.accept_losses);
}

TEST_F(KubeletTest, ADryRunIsSaidToBeOne) {
  losses_ = {"entry 3: it has no devices"};
  const Result result =
      Run({"--state-dir", "/s", "import", "kubelet", "/k", "--dry-run"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("would import 2 pods"));
  EXPECT_THAT(result.err, HasSubstr("left out: entry 3"));
}

// The rest is shown nevertheless.
TEST_F(KubeletTest, ADryRunFailsWhenAFileIsDamaged) {
  losses_ = {"all of '/k/dra_manager_state', which is damaged: cut"};
  damaged_ = {"/k/dra_manager_state"};
  std::vector<std::string> arguments = {"--state-dir", "/s", "import",
                                        "kubelet",     "/k", "--dry-run"};
  const Result result = Run(arguments);
  EXPECT_EQ(result.code, kExitFailed);
  EXPECT_THAT(result.out, HasSubstr("would import 2 pods"));
  EXPECT_THAT(result.err, AllOf(HasSubstr("left out: all of"),
                                HasSubstr("a file is damaged: nothing would")));
  damaged_.push_back("/k/device-plugins/kubelet_internal_checkpoint");
  EXPECT_THAT(Run(arguments).err, HasSubstr("both files are damaged"));
  // As the import would do.
  arguments.push_back("--accept-losses");
  EXPECT_EQ(Run(arguments).code, kExitDone);
}

TEST_F(KubeletTest, LossesAreAcceptedOrNothingIsWritten) {
  losses_ = {"one", "two"};
  for (const char* verb : {"import", "export"}) {
    Result result = Run({"--state-dir", "/s", verb, "kubelet", "/k"});
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr("left out: two"));
    EXPECT_THAT(result.err, HasSubstr("--accept-losses"));
    result =
        Run({"--state-dir", "/s", verb, "kubelet", "/k", "--accept-losses"});
    EXPECT_EQ(result.code, 0) << result.err;
  }
}

TEST_F(KubeletTest, ExportIsADocumentForPrograms) {
  const auto document =
      RunJson({"--state-dir", "/s", "export", "kubelet", "/out"});
  EXPECT_EQ(document["kind"], "KubeletExport");
  EXPECT_EQ(document["written"], true);
  EXPECT_EQ(document["pods"], 1);
  EXPECT_EQ(exported_.out_dir, "/out");
  EXPECT_EQ(exported_.state_dir, "/s");
}

TEST_F(KubeletTest, AStateDirectoryAndADirectoryAreNeeded) {
  EXPECT_THAT(Run({"import", "kubelet", "/k"}).err,
              HasSubstr("--state-dir DIR import kubelet"));
  EXPECT_THAT(Run({"export", "kubelet", "/k"}).err,
              HasSubstr("--state-dir DIR export kubelet"));
  EXPECT_EQ(Run({"--state-dir", "/s", "import", "kubelet"}).code, kExitUsage);
  EXPECT_EQ(Run({"--state-dir", "/s", "import"}).code, kExitUsage);
  EXPECT_EQ(Run({"--state-dir", "/s", "export", "kubelet", ""}).code,
            kExitUsage);
}

TEST_F(KubeletTest, ErrorsAreShown) {
  import_kubelet_ = [](const KubeletImportOptions&) {
    return absl::AlreadyExistsError("it was done");
  };
  const Result result = Run({"--state-dir", "/s", "import", "kubelet", "/k"});
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("it was done"));
}

/// The file that a real kubelet wrote.
constexpr char kDevices[] =
    R"({"Data":{"PodDeviceEntries":[{"PodUID":"bf52b2cd-b611-4e79-86b1-280b283)"
    R"(185c3","ContainerName":"check","ResourceName":"nvidia.com/gpu","DeviceI)"
    R"(Ds":{"-1":["tegra"]},"AllocResp":"Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSB)"
    R"(XRlZ3Jh"}],"RegisteredDevices":{"nvidia.com/gpu":["tegra"]}},"Checksum")"
    R"(:3660592824})";
/// The file of a kubelet's very first start.
constexpr char kClaims[] =
    R"({"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.ku)"
    R"(belet.k8s.io/v1\",\"ClaimInfoStateList\":null}","Checksum":4010664294})";

class VerifyKubeletTest : public CommandLineTest {
 protected:
  void WriteDevices(const std::string& bytes) const {
    std::filesystem::create_directories(devices_file().parent_path());
    std::ofstream(devices_file(), std::ios::binary) << bytes;
  }
  void WriteClaims(const std::string& bytes) const {
    std::ofstream(folder_.path() / "dra_manager_state", std::ios::binary)
        << bytes;
  }
  std::filesystem::path devices_file() const {
    return folder_.path() / "device-plugins" / "kubelet_internal_checkpoint";
  }
  Result Verify(const std::string& format = "table") {
    return Run({"verify", "kubelet", folder_.path().string(), "-o", format});
  }

  TempFolder folder_;
};

TEST_F(VerifyKubeletTest, GoodFilesAreDone) {
  WriteDevices(kDevices);
  WriteClaims(kClaims);
  const Result result = Verify();
  EXPECT_EQ(result.code, kExitDone) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("CHECKSUM"), HasSubstr(devices_file().string()),
                    HasSubstr("since 1.20"),
                    HasSubstr("checkpoint.dra.kubelet.k8s.io/v1"),
                    HasSubstr("right"), Not(HasSubstr("wrong"))));
  // No daemon is asked.
  EXPECT_TRUE(endpoints_.empty());
}

TEST_F(VerifyKubeletTest, AFileThatIsNotThereIsSaidToBeMissing) {
  WriteDevices(kDevices);
  const Result result = Verify();
  EXPECT_EQ(result.code, kExitDone);
  EXPECT_THAT(result.err, HasSubstr("dra_manager_state' is not there"));
}

TEST_F(VerifyKubeletTest, AWrongChecksumFails) {
  std::string bytes = kDevices;
  bytes.replace(bytes.size() - 2, 1, "5");
  WriteDevices(bytes);
  WriteClaims(kClaims);
  const Result result = Verify();
  EXPECT_EQ(result.code, kExitFailed);
  EXPECT_THAT(result.out, AllOf(HasSubstr("wrong"), HasSubstr("right")));
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("'" + devices_file().string() + "': "),
                    HasSubstr("3660592825 in the file, 3660592824 computed"),
                    HasSubstr("a file is damaged, or not")));
}

TEST_F(VerifyKubeletTest, AFileThatIsCutFails) {
  WriteDevices(std::string(kDevices).substr(0, 100));
  WriteClaims("");
  const Result result = Verify();
  EXPECT_EQ(result.code, kExitFailed);
  EXPECT_THAT(result.out, HasSubstr("<unknown>"));
  EXPECT_THAT(result.err, HasSubstr("both files are damaged, or not"));
}

TEST_F(VerifyKubeletTest, ADirectoryWithoutFilesIsAnError) {
  for (const std::filesystem::path& directory :
       {folder_.path(), folder_.path() / "missing"}) {
    const Result result = Run({"verify", "kubelet", directory.string()});
    EXPECT_EQ(result.code, kExitNotFound);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr("there are no checkpoint files of a "
                                      "kubelet in '" +
                                      directory.string() + "'"));
  }
}

TEST_F(VerifyKubeletTest, AListIsADocumentForPrograms) {
  WriteDevices(kDevices);
  WriteClaims("{");
  const Result result = Verify("json");
  EXPECT_EQ(result.code, kExitFailed);
  const auto list = nlohmann::ordered_json::parse(result.out, nullptr, false);
  EXPECT_EQ(list["kind"], "KubeletFileList");
  ASSERT_EQ(list["items"].size(), 2u) << result.out;
  const auto& devices = list["items"][0];
  EXPECT_EQ(devices["path"], devices_file().string());
  EXPECT_EQ(devices["exists"], true);
  EXPECT_EQ(devices["format"], "2");
  EXPECT_EQ(devices["kubelets"], "since 1.20");
  EXPECT_EQ(devices["checksum"], "right");
  EXPECT_EQ(devices["pods"], 1);
  EXPECT_EQ(devices["devices"], 1);
  EXPECT_FALSE(devices.contains("claims"));
  EXPECT_FALSE(devices.contains("problem"));
  const auto& claims = list["items"][1];
  EXPECT_EQ(claims["checksum"], "unknown");
  EXPECT_FALSE(claims.contains("claims"));
  EXPECT_NE(claims["problem"], "");
}

TEST_F(VerifyKubeletTest, ADirectoryIsNeeded) {
  EXPECT_EQ(Run({"verify"}).code, kExitUsage);
  EXPECT_EQ(Run({"verify", "kubelet", ""}).code, kExitUsage);
  const Result result = Run({"verify", "kubelet"});
  EXPECT_EQ(result.code, kExitUsage);
  EXPECT_THAT(result.err, HasSubstr("verify kubelet /var/lib/kubelet"));
}

}  // namespace
}  // namespace devmgr::ctl

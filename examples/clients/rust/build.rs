// SPDX-License-Identifier: Apache-2.0
// The schemas are those that devmgr installs; DEVMGR_PROTO names another folder.

fn main() -> std::io::Result<()> {
    let folder = std::env::var("DEVMGR_PROTO").unwrap_or("/usr/share/devmgr/proto".into());
    println!("cargo:rerun-if-env-changed=DEVMGR_PROTO");
    tonic_build::configure().build_server(false).compile_protos(
        &["devmgr/control/v1/control.proto", "devmgr/inspection/v1/inspection.proto"],
        &[folder],
    )
}

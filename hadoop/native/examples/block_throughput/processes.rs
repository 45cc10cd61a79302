//! The processes of a measurement: started, measured, ended.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use crate::Outcome;

/// A child process in one role; it ends when dropped.
pub struct Process {
    child: Child,
    pub role: &'static str,
}

impl Process {
    pub fn start(role: &'static str, args: &[&str]) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let child = command.spawn()?;
        Ok(Process { child, role })
    }

    /// The first line that it prints.
    pub fn first_line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        BufReader::new(self.output()?).read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// All that it prints from here on.
    pub fn output(&mut self) -> Outcome<ChildStdout> {
        Ok(self.child.stdout.take().ok_or("output taken already")?)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// CPU seconds of a process so far (utime and stime of proc(5), 100 a second).
fn cpu_s(pid: u32) -> Outcome<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit_once(')').ok_or("odd /proc/stat")?.1;
    let ticks = fields.split_whitespace().skip(11).take(2);
    Ok(ticks.map(str::parse::<f64>).sum::<Result<f64, _>>()? / 100.0)
}

/// Clock and CPU time from here on.
pub struct Meter {
    started: Instant,
    processes: Vec<(&'static str, u32, f64)>,
}

impl Meter {
    /// Begins to measure this process, in the role of the client, and others.
    pub fn start<'a>(others: impl IntoIterator<Item = &'a Process>) -> Outcome<Self> {
        let mut processes = vec![("client", std::process::id(), 0.0)];
        processes.extend(others.into_iter().map(|p| (p.role, p.id(), 0.0)));
        for (_, pid, before) in &mut processes {
            *before = cpu_s(*pid)?;
        }
        let started = Instant::now();
        Ok(Meter { started, processes })
    }

    /// Prints the rate and the CPU time of each process for so many bytes.
    pub fn print(&self, what: &str, bytes: f64) -> Outcome {
        let wall = self.started.elapsed().as_secs_f64();
        let rate = bytes * 8.0 / wall / 1e9;
        println!(
            "{what}: {:.2} GB in {wall:.2} s, {rate:.2} Gbit/s",
            bytes / 1e9
        );
        let mut total = 0.0;
        for (role, pid, before) in &self.processes {
            let spent = (cpu_s(*pid)? - before) / (bytes / 1e9);
            total += spent;
            println!("{role:>12}: {spent:.2} CPU-s/GB");
        }
        println!("{:>12}: {total:.2} CPU-s/GB", "all");
        Ok(())
    }
}

/// Where a router is to listen.
pub fn listen_at(kind: &str) -> Outcome<String> {
    let socket = format!("trunkline-throughput-{}.sock", std::process::id());
    match kind {
        "tcp" => Ok("tcp://127.0.0.1:0".to_owned()),
        "unix" => Ok(format!(
            "unix://{}",
            std::env::temp_dir().join(socket).display()
        )),
        _ => Err(format!("{kind}: not measured; use tcp or unix").into()),
    }
}

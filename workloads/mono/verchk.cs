// SPDX-License-Identifier: MIT
//
// Before each request, has the database changed since the cache was filled? The check of a C# server, in its three forms:
//
//   reprepare   PRAGMA data_version prepared, stepped and finalized under the cache's lock
//   prepared    the statement kept, only stepped under the lock
//   header      the WAL-index header read from the mapped -shm file under the lock; SQLite is not asked
//
// while another connection commits. What was seen is counted against what was committed. The protocol is that of all workloads
// (workloads/README.md); rowload verchk does the same in C with further forms.
//
// usage: verchk [--mode M] [--threads N] [--checks-per-request N] [--commit-hz N] [--seconds S] [--calls N] [--seed N] [--progress]
//
// SQLite is called directly: the ADO.NET provider tries to leave WAL when it opens a database. The trap is the header: it is
// being written while it is read, so both its copies are read, and a difference is no change but a reason to read again.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

static unsafe class Native
{
    const string Sqlite = "libsqlite3.so.0";
    [DllImport(Sqlite)] public static extern int sqlite3_open_v2(byte[] file, out IntPtr db, int flags, IntPtr vfs);
    [DllImport(Sqlite)] public static extern int sqlite3_close(IntPtr db);
    [DllImport(Sqlite)] public static extern int sqlite3_exec(IntPtr db, byte[] sql, IntPtr call, IntPtr data, IntPtr error);
    [DllImport(Sqlite)] public static extern int sqlite3_prepare_v2(IntPtr db, byte[] sql, int bytes, out IntPtr stmt, IntPtr tail);
    [DllImport(Sqlite)] public static extern int sqlite3_step(IntPtr stmt);
    [DllImport(Sqlite)] public static extern int sqlite3_reset(IntPtr stmt);
    [DllImport(Sqlite)] public static extern int sqlite3_finalize(IntPtr stmt);
    [DllImport(Sqlite)] public static extern long sqlite3_column_int64(IntPtr stmt, int column);
    [DllImport(Sqlite)] public static extern int sqlite3_busy_timeout(IntPtr db, int ms);
    [DllImport(Sqlite)] public static extern IntPtr sqlite3_errmsg(IntPtr db);
    [DllImport(Sqlite)] public static extern IntPtr sqlite3_libversion();
    [DllImport("libc")] public static extern int getpid();
    [DllImport("libc")] public static extern int open(byte[] file, int flags);
    [DllImport("libc")] public static extern int close(int fd);
    [DllImport("libc")] public static extern IntPtr mmap(IntPtr at, IntPtr bytes, int protection, int flags, int fd, IntPtr offset);
    [DllImport("libc")] public static extern int clock_gettime(int clock, long[] time);
    [DllImport("libc")] public static extern int getrusage(int who, long[] usage);
    [DllImport("libc")] public static extern int sigtimedwait(ulong[] set, IntPtr info, long[] timeout);

    public static byte[] Text(string text) { return Encoding.UTF8.GetBytes(text + "\0"); }
}

class Refused : Exception
{
    public Refused(string sentence) : base(sentence) { }
}

class Options
{
    public string Mode = "prepared";
    public int Threads = 1, Checks = 5, CommitHz = 10;
    public double Seconds;
    public long Calls, Seed = 1;
    public bool Progress;

    static double Number(string name, string text, double low, double high, bool whole)
    {
        double value;
        bool good = double.TryParse(text, NumberStyles.AllowDecimalPoint, CultureInfo.InvariantCulture, out value);
        if (!good || value < low || value > high || (whole && value != Math.Floor(value)))
            throw new Refused("--" + name + " takes a " + (whole ? "whole " : "") + "number from " + low + " to " + high + ", not '" + text + "'.");
        return value;
    }

    public Options(string[] args)
    {
        var table = new Dictionary<string, Action<string>> {
            { "mode", text => {
                if (Array.IndexOf(new[] { "reprepare", "prepared", "header" }, text) < 0)
                    throw new Refused("--mode takes one of reprepare, prepared, header, not '" + text + "'.");
                Mode = text;
            } },
            { "threads", text => Threads = (int)Number("threads", text, 1, 256, true) },
            { "checks-per-request", text => Checks = (int)Number("checks-per-request", text, 1, 1000, true) },
            { "commit-hz", text => CommitHz = (int)Number("commit-hz", text, 0, 1000, true) },
            { "seconds", text => Seconds = Number("seconds", text, 0, 864000, false) },
            { "calls", text => Calls = (long)Number("calls", text, 0, 1e15, true) },
            { "seed", text => Seed = (long)Number("seed", text, 0, 4294967295.0, true) },
        };
        for (int i = 0; i < args.Length; i++) {
            if (args[i] == "--progress") {
                Progress = true;
                continue;
            }
            Action<string> take = null;
            if (!args[i].StartsWith("--") || !table.TryGetValue(args[i].Substring(2), out take))
                throw new Refused("There is no option '" + args[i] + "'; there are --" + string.Join(", --", table.Keys) + ", --progress.");
            if (i + 1 == args.Length)
                throw new Refused(args[i] + " needs a value.");
            take(args[++i]);
        }
    }
}

class Connection : IDisposable
{
    const int ReadWriteCreate = 2 | 4;
    public readonly IntPtr Handle;

    public Connection(string file)
    {
        if (Native.sqlite3_open_v2(Native.Text(file), out Handle, ReadWriteCreate, IntPtr.Zero) != 0)
            throw new Refused(file + " could not be opened.");
        Native.sqlite3_busy_timeout(Handle, 10000);
    }

    public void Do(string sql)
    {
        if (Native.sqlite3_exec(Handle, Native.Text(sql), IntPtr.Zero, IntPtr.Zero, IntPtr.Zero) != 0)
            throw new Refused("'" + sql + "' failed: " + Marshal.PtrToStringAnsi(Native.sqlite3_errmsg(Handle)) + ".");
    }

    public IntPtr Prepare(byte[] sql)
    {
        IntPtr stmt;
        if (Native.sqlite3_prepare_v2(Handle, sql, -1, out stmt, IntPtr.Zero) != 0)
            throw new Refused("A statement could not be prepared: " + Marshal.PtrToStringAnsi(Native.sqlite3_errmsg(Handle)) + ".");
        return stmt;
    }

    public void Dispose() { Native.sqlite3_close(Handle); }
}

// What the cache's version is compared with: one of the three forms, always called under the lock.
class ResponseCache : IDisposable
{
    const int HeaderBytes = 48, IsInitAt = 12;
    static readonly byte[] Pragma = Native.Text("PRAGMA data_version");

    readonly object gate = new object();
    readonly Connection connection;
    readonly IntPtr kept;
    readonly unsafe ulong* mapped;
    readonly ulong[] last = new ulong[HeaderBytes / 8], now = new ulong[HeaderBytes / 8];
    readonly Func<bool> check;
    long version;
    public long Changes, Torn;

    public unsafe ResponseCache(string file, string mode)
    {
        connection = new Connection(file);
        kept = connection.Prepare(Pragma);
        version = Read(kept);
        if (mode == "header") {
            int fd = Native.open(Native.Text(file + "-shm"), 0);
            IntPtr at = fd < 0 ? new IntPtr(-1) : Native.mmap(IntPtr.Zero, new IntPtr(4096), 1, 1, fd, IntPtr.Zero);
            if (at == new IntPtr(-1))
                throw new Refused(file + "-shm could not be mapped.");
            Native.close(fd);
            mapped = (ulong*)at;
        }
        check = mode == "reprepare" ? CurrentReprepared : mode == "prepared" ? (Func<bool>)CurrentPrepared : CurrentHeader;
        check();
        Changes = Torn = 0;
    }

    static long Read(IntPtr stmt)
    {
        Native.sqlite3_step(stmt);
        long value = Native.sqlite3_column_int64(stmt, 0);
        Native.sqlite3_reset(stmt);
        return value;
    }

    bool Noted(long value)
    {
        if (value == version)
            return true;
        version = value;
        Changes++;
        return false;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    bool CurrentReprepared()
    {
        IntPtr stmt = connection.Prepare(Pragma);
        bool same = Noted(Read(stmt));
        Native.sqlite3_finalize(stmt);
        return same;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    bool CurrentPrepared() { return Noted(Read(kept)); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    unsafe bool CurrentHeader()
    {
        int words = HeaderBytes / 8;
        for (;;) {
            bool whole = true, same = true;
            for (int i = 0; i < words; i++)
                now[i] = Volatile.Read(ref mapped[i]);
            Thread.MemoryBarrier();
            for (int i = 0; i < words; i++) {
                whole &= now[i] == Volatile.Read(ref mapped[words + i]);
                same &= now[i] == last[i];
            }
            if (whole && (byte)(now[IsInitAt / 8] >> (IsInitAt % 8 * 8)) == 1) {
                if (same)
                    return true;
                Array.Copy(now, last, words);
                Changes++;
                return false;
            }
            Torn++;
            Thread.Yield();
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public bool IsCurrent()
    {
        lock (gate)
            return check();
    }

    public void Dispose()
    {
        Native.sqlite3_finalize(kept);
        connection.Dispose();
    }
}

class Mark
{
    public readonly double Wall, Cpu;
    public readonly long Calls, Voluntary, Involuntary;

    public static double Clock(int number)
    {
        var time = new long[2];
        Native.clock_gettime(number, time);
        return time[0] + time[1] / 1e9;
    }

    public Mark(long calls)
    {
        var usage = new long[18];
        Native.getrusage(0, usage);
        Wall = Clock(1);
        Cpu = Clock(2);
        Calls = calls;
        Voluntary = usage[16];
        Involuntary = usage[17];
    }

    public static void Rate(Mark a, Mark b, string span)
    {
        long calls = b.Calls - a.Calls;
        double secs = b.Wall - a.Wall, cpu = b.Cpu - a.Cpu;
        Console.WriteLine(string.Format(CultureInfo.InvariantCulture,
            "RATE calls={0} rows=0 secs={1:F6} rate={2:F1} cpu_secs={3:F6} cpu_rate={4:F1} ns_per_call={5:F1} nvcsw={6} nivcsw={7} span={8}",
            calls, secs, secs > 0 ? calls / secs : 0, cpu, cpu > 0 ? calls / cpu : 0, calls > 0 ? cpu * 1e9 / calls : 0,
            b.Voluntary - a.Voluntary, b.Involuntary - a.Involuntary, span));
    }
}

// One serving thread's count, on cache lines of its own.
[StructLayout(LayoutKind.Explicit, Size = 128)]
struct Count
{
    [FieldOffset(64)] public long Requests;
}

static class Verchk
{
    static Options option;
    static ResponseCache cache;
    static Count[] counts;
    static long commits, limit;
    static volatile bool stopServing, stopWriting;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Request()
    {
        for (int i = 0; i < option.Checks; i++)
            cache.IsCurrent();
    }

    static void Serve(int index)
    {
        long part = limit / option.Threads + (index < limit % option.Threads ? 1 : 0);
        while (!stopServing && (limit == 0 || counts[index].Requests < part)) {
            Request();
            Volatile.Write(ref counts[index].Requests, counts[index].Requests + 1);
        }
    }

    static long Done()
    {
        long sum = 0;
        for (int i = 0; i < counts.Length; i++)
            sum += Volatile.Read(ref counts[i].Requests);
        return sum;
    }

    // A commit is seen by a request that begins after it: wait until one thread has ended two more.
    static void AwaitSeen()
    {
        var before = new long[counts.Length];
        for (int i = 0; i < before.Length; i++)
            before[i] = Volatile.Read(ref counts[i].Requests);
        while (!stopWriting) {
            for (int i = 0; i < before.Length; i++)
                if (Volatile.Read(ref counts[i].Requests) >= before[i] + 2)
                    return;
            Thread.Sleep(1);
        }
    }

    static void Write(string file)
    {
        using (var connection = new Connection(file))
            while (!stopWriting) {
                Thread.Sleep(1000 / option.CommitHz);
                connection.Do("UPDATE state SET value = value + 1");
                commits++;
                AwaitSeen();
            }
    }

    static bool Signalled()
    {
        // INT is 2, TERM is 15; both are blocked in every thread (see the script that starts this).
        return Native.sigtimedwait(new ulong[16] { (1UL << 1) | (1UL << 14), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, IntPtr.Zero, new long[2]) > 0;
    }

    static List<Thread> Start()
    {
        var all = new List<Thread>();
        for (int i = 0; i < option.Threads; i++) {
            int index = i;
            all.Add(new Thread(() => Serve(index)) { Name = "serve " + i, IsBackground = true });
            all[i].Start();
        }
        return all;
    }

    static void Warm()
    {
        counts = new Count[option.Threads];
        limit = 0;
        var all = Start();
        double begin = Mark.Clock(1);
        while (Done() < 20000 || Mark.Clock(1) - begin < 0.5)
            Thread.Sleep(1);
        stopServing = true;
        all.ForEach(thread => thread.Join());
        stopServing = false;
        counts = new Count[option.Threads];
        limit = option.Calls;
    }

    static void DriftWarn(List<Mark> slices)
    {
        int window = (slices.Count - 1) / 10;
        if (window == 0)
            return;
        Func<int, int, double> speed = (a, b) => (slices[b].Calls - slices[a].Calls) / (slices[b].Cpu - slices[a].Cpu);
        double off = 100 * (speed(window * 7, window * 10) - speed(0, window * 3)) / speed(0, window * 10);
        if (Math.Abs(off) > 2)
            Console.Error.WriteLine(string.Format(CultureInfo.InvariantCulture,
                "verchk: not stationary: the last three of ten windows ran {0:F1} % against the first three.", off));
    }

    static void Hold(string file)
    {
        int pid = Native.getpid();
        Console.Error.WriteLine("READY pid=" + pid + " tid=" + pid + " workload=mono-verchk op=" + option.Mode + " limit=0 threads=" + option.Threads +
            " checks_per_request=" + option.Checks + " commit_hz=" + option.CommitHz + " mono=" + Environment.Version + " sqlite=" +
            Marshal.PtrToStringAnsi(Native.sqlite3_libversion()) + " seed=" + option.Seed);
        var writer = new Thread(() => Write(file)) { Name = "writer", IsBackground = true };
        var begin = new Mark(0);
        var second = begin;
        var slices = new List<Mark> { begin };
        var all = Start();
        if (option.CommitHz > 0)
            writer.Start();
        while (!(option.Calls > 0 && Done() >= option.Calls) && !(option.Seconds > 0 && Mark.Clock(1) - begin.Wall >= option.Seconds) && !Signalled()) {
            Thread.Sleep(5);
            var now = new Mark(Done());
            if (now.Wall - slices[slices.Count - 1].Wall >= 0.1 && slices.Count < 100000)
                slices.Add(now);
            if (option.Progress && now.Wall - second.Wall >= 1) {
                Mark.Rate(second, now, "second");
                second = now;
            }
        }
        var end = new Mark(Done());
        stopWriting = true;
        if (option.CommitHz > 0)
            writer.Join();
        stopServing = true;
        all.ForEach(thread => thread.Join());
        cache.IsCurrent(); // the last commit, if it came after the last request
        Mark.Rate(begin, end, "run");
        double checks = (double)(end.Calls - begin.Calls) * option.Checks;
        Console.WriteLine(string.Format(CultureInfo.InvariantCulture, "CHECKS checks={0:F0} changes={1} commits={2} torn={3} cpu_ns_per_check={4:F2}",
            checks, cache.Changes, commits, cache.Torn, checks > 0 ? (end.Cpu - begin.Cpu) * 1e9 / checks : 0));
        // Equal work is equal requests whose every change was seen, however many there were.
        Console.WriteLine("SUM {0:x8}", (uint)(Done() * 2654435761L + option.Checks + (cache.Changes == commits ? 0 : 1)));
        DriftWarn(slices);
    }

    static int Main(string[] args)
    {
        string folder = null;
        try {
            option = new Options(args);
            folder = Path.Combine(Path.GetTempPath(), "rowprof-verchk-" + Native.getpid());
            Directory.CreateDirectory(folder);
            string file = Path.Combine(folder, "verchk.db");
            using (var owner = new Connection(file)) {
                owner.Do("PRAGMA journal_mode = WAL");
                owner.Do("CREATE TABLE state(value INTEGER NOT NULL); INSERT INTO state VALUES(0)");
                using (cache = new ResponseCache(file, option.Mode)) {
                    Warm();
                    Hold(file);
                }
            }
            return 0;
        } catch (Refused refused) {
            Console.Error.WriteLine("verchk: " + refused.Message);
            return 2;
        } finally {
            if (folder != null && Directory.Exists(folder))
                Directory.Delete(folder, true);
        }
    }
}

// Package dbserver starts private database servers: a MariaDB or a PostgreSQL on a free loopback
// port, with a data folder of its own, for tests, benchmarks and the drill. Nothing of them is left
// after Stop, and they die with the process that started them.
//
//	s, err := dbserver.StartMariaDB(ctx)
//	defer s.Stop()
//	db, err := sql.Open("mysql", s.DSN("mysql"))
//
// It needs the server's binaries (Debian: mariadb-server, postgresql) and no running server, no
// configuration of the machine, and no driver. ErrNotInstalled is returned where they are missing.
//
// What is committed survives Kill, but not a power loss: the servers write their log at each commit
// and do not wait for the disk. Whoever measures commits turns that on by an argument.
//
// PostgreSQL refuses to run as root: where this process is root, it runs as the user postgres, or
// nobody where there is none.
package dbserver

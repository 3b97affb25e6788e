// Package dbtest gives tests databases on private servers: one MariaDB and one PostgreSQL for each
// test process, started by the first test that asks, and in it a database for each test.
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.Stopping(m)) }
//
//	db := dbtest.MariaDB(t)
//	store, err := mysql.Open(t.Context(), db.DSN())
//
// A test that kills or restarts its server asks for one of its own: StartMariaDB, StartPostgres.
//
// A test is skipped, loudly, where the server is not installed; with ORDERWHEEL_REQUIRE_SERVERS=1
// it fails instead, so that a CI machine cannot skip by accident.
package dbtest

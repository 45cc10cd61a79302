"""What operators see where hosts cause more alarms than anybody reads."""

from trunkline_controller.net.alarms import MAX_ALARMS, MAX_OF_HOSTS, Alarms


def test_hosts_hide_no_alarm_of_a_switch():
    alarms = Alarms()
    for number in range(2 * MAX_ALARMS):
        alarms.sound(f"conflict 10.0.{number // 256}.{number % 256}", "two hosts", "mend it", 0.0, 10.0, of_hosts=True)
    alarms.sound("switch 1", "not connected", "see that it runs", 1.0)
    assert len(alarms.all()) == MAX_OF_HOSTS + 1
    assert alarms.all()[0].what == "not connected"
    alarms.tick(10.0)
    assert [alarm.what for alarm in alarms.all()] == ["not connected"]
    alarms.sound("conflict 10.0.0.1", "two hosts", "mend it", 11.0, 10.0, of_hosts=True)
    assert len(alarms.all()) == 2, "those that are over hold no place"


def test_an_alarm_that_sounds_again_keeps_its_beginning_and_its_place():
    alarms = Alarms()
    for number in range(MAX_OF_HOSTS):
        alarms.sound(f"conflict {number}", "two hosts", "mend it", 0.0, 10.0, of_hosts=True)
    alarms.sound("conflict 0", "two hosts", "mend it", 5.0, 10.0, of_hosts=True)
    alarms.tick(12.0)
    (left,) = alarms.all()
    assert left.since == 0.0
